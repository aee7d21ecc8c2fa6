package main

import (
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// prepare names the informers of the server in its metrics. Two informers of one name are an error.
func prepare(o *options.CompletedOptions) (err error) {
	if o.InformerName == nil {
		o.InformerName, err = cache.NewInformerName("kube-apiserver")
	}
	return err
}

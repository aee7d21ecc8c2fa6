package main

import "k8s.io/kubernetes/cmd/kube-apiserver/app/options"

func prepare(*options.CompletedOptions) error { return nil }

package main

import (
	"k8s.io/apiserver/pkg/server/flagz"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

func addFlags(s *options.ServerRunOptions, sets cliflag.NamedFlagSets) {
	s.Flagz = flagz.NamedFlagSetsReader{FlagSets: sets}
}

package main

import (
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

func addFlags(_ *options.ServerRunOptions, sets cliflag.NamedFlagSets) {
	options.AddCustomGlobalFlags(sets.FlagSet("generic"))
}

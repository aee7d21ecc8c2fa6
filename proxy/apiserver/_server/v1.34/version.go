package main

import (
	"context"

	genericapiserver "k8s.io/apiserver/pkg/server"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// This file has what differs between minor versions: from v1.34 on.

func setGates(s *options.ServerRunOptions) error {
	return s.GenericServerRunOptions.ComponentGlobalsRegistry.Set()
}

func complete(ctx context.Context, s *options.ServerRunOptions) (options.CompletedOptions, error) {
	return s.Complete(ctx)
}

func addMetrics(s *options.ServerRunOptions) {
	registry := s.GenericServerRunOptions.ComponentGlobalsRegistry
	registry.FeatureGateFor(basecompatibility.DefaultKubeComponent).(featuregate.MutableFeatureGate).AddMetrics()
	registry.AddMetrics()
}

type prepared interface{ Run(context.Context) error }

func serve(ctx context.Context, p prepared) error { return p.Run(ctx) }

func signals() context.Context { return genericapiserver.SetupSignalContext() }

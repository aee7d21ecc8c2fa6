package main

import (
	"context"

	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// This file has what differs between minor versions: from v1.30 on.

func setGates(*options.ServerRunOptions) error { return nil } // the flag sets them

func complete(_ context.Context, s *options.ServerRunOptions) (options.CompletedOptions, error) {
	return s.Complete()
}

func addMetrics(*options.ServerRunOptions) { utilfeature.DefaultMutableFeatureGate.AddMetrics() }

type prepared interface{ Run(<-chan struct{}) error }

func serve(ctx context.Context, p prepared) error { return p.Run(ctx.Done()) }

func signals() context.Context { return genericapiserver.SetupSignalContext() }

package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/reconcilers"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// keyWriter is what writes the server's key into etcd.
func keyWriter(c *app.Config) *reconcilers.PeerEndpointLeaseReconciler {
	return &c.ControlPlane.ExtraConfig.PeerEndpointLeaseReconciler
}

func storageFactory(c *app.Config) serverstorage.StorageFactory {
	return c.ControlPlane.ExtraConfig.StorageFactory
}

func storageConfig(f serverstorage.StorageFactory, of schema.GroupResource) (*storagebackend.ConfigForResource, error) {
	return f.NewConfig(of)
}

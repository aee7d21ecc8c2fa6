package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const publishTimeout = 10 * time.Second

// publishEndpoints writes the EndpointSlice of the Service kubernetes. A sidecar looks there for
// servers without a sidecar. The servers here do not write it: a server behind a sidecar has
// another port than one without, so they would overwrite each other's entries. All clients connect
// to the port that is written here.
func (c *Cluster) publishEndpoints(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	var places []Place
	ready := ""
	for _, s := range c.Servers {
		places = append(places, s.place)
		if s.Ready() != nil {
			ready = s.Name
		}
	}
	slice := endpointSlice(places)
	failed := func(err error) error { return fmt.Errorf("publish the addresses of the servers: %w", err) }
	if ready == "" {
		return failed(errors.New("no server is ready that could write them"))
	}
	config, err := c.Direct(ready)
	if err != nil {
		return failed(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return failed(err)
	}
	if _, err := client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice,
		metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) && err != nil {
		return failed(err)
	}
	return nil
}

// endpointSlice has the addresses to which clients and peers connect.
func endpointSlice(places []Place) *discoveryv1.EndpointSlice {
	port, name := int32(securePort), "https"
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	for _, p := range places {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{p.Advertised.Addr().String()}})
	}
	return slice
}

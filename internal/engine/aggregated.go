package engine

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/extension"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Extender is a cluster that can run a program behind aggregated APIs.
type Extender interface {
	// Extend lets an extension apiserver serve these APIs and no others, and says where kube-apiservers reach it and by which authority they know
	// it, in PEM. It returns when it does; with no API there is no such program any more.
	Extend(ctx context.Context, apis []extension.API) (address netip.AddrPort, ca []byte, err error)
}

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// aggregated are the APIs that the extension apiserver serves, in the order in which they were defined.
type aggregated struct{ apis []scenario.Definition }

func (a *aggregated) find(d scenario.Definition) int {
	return slices.IndexFunc(a.apis, func(o scenario.Definition) bool { return o.Group == d.Group && o.Resource == d.Resource })
}

// aggregate registers the versions of an aggregated API with the servers, or gives it other ones. What is registered is served before that and
// after it: who asks in between must not find a registration with nothing behind it.
func (e *executor) aggregate(ctx context.Context, d scenario.Definition) error {
	var gone []string
	if i := e.aggregated.find(d); i >= 0 {
		was := e.aggregated.apis[i]
		gone = slices.DeleteFunc(slices.Clone(was.Versions), func(v string) bool { return slices.Contains(d.Versions, v) })
		e.aggregated.apis[i].Versions = append(slices.Clone(d.Versions), gone...)
	} else {
		e.aggregated.apis = append(e.aggregated.apis, d)
	}
	address, ca, err := e.extend(ctx)
	if err != nil {
		return err
	}
	err = e.throughAny(ctx, func(ctx context.Context, client dynamic.Interface) error {
		if err := applied(ctx, client.Resource(services).Namespace(extension.ServiceNamespace), service(address)); err != nil {
			return err
		}
		for _, version := range d.Versions {
			if err := applied(ctx, client.Resource(apiServices), apiService(d.Group, version, address, ca)); err != nil {
				return err
			}
		}
		for _, version := range gone {
			if err := unregister(ctx, client, d.Group, version); err != nil {
				return err
			}
		}
		return wait.PollUntilContextCancel(ctx, definitionInterval, true, func(ctx context.Context) (bool, error) {
			for _, version := range d.Versions {
				now, err := client.Resource(apiServices).Get(ctx, version+"."+d.Group, metav1.GetOptions{})
				if err != nil || !conditionHolds(now, "Available") {
					return false, err
				}
			}
			return true, nil
		})
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	e.aggregated.apis[e.aggregated.find(d)].Versions = d.Versions
	_, _, err = e.extend(ctx)
	return err
}

// disaggregate removes all versions of an aggregated API, and then what served them.
func (e *executor) disaggregate(ctx context.Context, d scenario.Definition) error {
	i := e.aggregated.find(d)
	if i < 0 {
		return nil
	}
	versions := e.aggregated.apis[i].Versions
	err := e.throughAny(ctx, func(ctx context.Context, client dynamic.Interface) error {
		for _, version := range versions {
			if err := unregister(ctx, client, d.Group, version); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.aggregated.apis = slices.Delete(e.aggregated.apis, i, i+1)
	_, _, err = e.extend(ctx)
	return err
}

// extend tells the extension apiserver what it serves now.
func (e *executor) extend(ctx context.Context) (netip.AddrPort, []byte, error) {
	cluster, ok := e.cluster.(Extender)
	if !ok {
		return netip.AddrPort{}, nil, fmt.Errorf("this backend runs no program that an aggregated API could be passed on to; use --backend local or sim")
	}
	var apis []extension.API
	for _, d := range e.aggregated.apis {
		apis = append(apis, extension.API{Group: d.Group, Resource: d.Resource, Versions: d.Versions})
	}
	return cluster.Extend(ctx, apis)
}

func applied(ctx context.Context, api dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	_, err := api.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "skewproof", Force: true})
	return err
}

func unregister(ctx context.Context, client dynamic.Interface, group, version string) error {
	err := client.Resource(apiServices).Delete(ctx, version+"."+group, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// service leads to the program by its address: there is no proxy on nodes that a cluster address would need.
func service(address netip.AddrPort) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": extension.ServiceName, "namespace": extension.ServiceNamespace},
		"spec":     map[string]any{"type": "ExternalName", "externalName": address.Addr().String()},
	}}
}

func apiService(group, version string, address netip.AddrPort, ca []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiServices.GroupVersion().String(), "kind": "APIService",
		"metadata": map[string]any{"name": version + "." + group},
		"spec": map[string]any{
			"group": group, "version": version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
			"caBundle": base64.StdEncoding.EncodeToString(ca),
			"service":  map[string]any{"name": extension.ServiceName, "namespace": extension.ServiceNamespace, "port": int64(address.Port())},
		},
	}}
}

package peers

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	internalinformers "k8s.io/client-go/informers/apiserverinternal/v1alpha1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
)

// setWatch reads all objects of some informers after a change. If there are a thousand definitions
// at the start, it reads them once, not a thousand times.
type setWatch struct {
	informers []cache.SharedIndexInformer
	look      func()
}

// run watches until the context ends. It calls synced after the first look at everything that
// existed.
func (w *setWatch) run(ctx context.Context, failed func(error), synced func()) error {
	changed := make(chan struct{}, 1)
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify(changed) },
		UpdateFunc: func(_, _ any) { notify(changed) },
		DeleteFunc: func(any) { notify(changed) },
	}
	var all []watched
	for _, informer := range w.informers {
		all = append(all, watched{informer, handler})
	}
	return watch(ctx, all, failed, func() {
		w.look()
		synced()
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				w.look()
			}
		}
	})
}

// watchExtensions tells the store which custom resources and aggregated APIs exist. It calls
// changed after a change is in the store.
func watchExtensions(store *proxy.Store, client dynamic.Interface, changed func(proxy.Extensions)) (*setWatch, error) {
	informer := func(resource schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
		i := dynamicinformer.NewFilteredDynamicInformer(client, resource, "", 0, cache.Indexers{}, nil).Informer()
		if err := i.SetTransform(trim); err != nil {
			return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
		}
		return i, nil
	}
	definitions, err := informer(customResourceDefinitions)
	if err != nil {
		return nil, err
	}
	services, err := informer(apiServices)
	if err != nil {
		return nil, err
	}
	var last *proxy.Extensions
	return &setWatch{
		informers: []cache.SharedIndexInformer{definitions, services},
		look: func() {
			e := extensions(listed[*unstructured.Unstructured](definitions), listed[*unstructured.Unstructured](services))
			if last != nil && slices.Equal(e.CustomResources, last.CustomResources) && slices.Equal(e.Unserved, last.Unserved) &&
				slices.Equal(e.Aggregated, last.Aggregated) {
				return // only a status or labels have changed
			}
			last = &e
			e.At = time.Now()
			store.Observe(e)
			changed(e)
		},
	}, nil
}

// watchStorageVersions tells the store which servers serve each resource, according to
// StorageVersion objects.
func watchStorageVersions(store *proxy.Store, client kubernetes.Interface, log *slog.Logger) *setWatch {
	informer := internalinformers.NewStorageVersionInformer(client, 0, cache.Indexers{})
	return &setWatch{
		informers: []cache.SharedIndexInformer{informer},
		look: func() {
			event, errs := storageVersions(listed[*apiserverinternalv1alpha1.StorageVersion](informer))
			for _, err := range errs {
				log.Warn("StorageVersion ignored", "err", err)
			}
			store.Observe(event)
		},
	}
}

// listed returns the objects in an informer's store.
func listed[T any](informer cache.SharedIndexInformer) []T {
	all := informer.GetStore().List()
	list := make([]T, 0, len(all))
	for _, o := range all {
		if object, ok := o.(T); ok {
			list = append(list, object)
		}
	}
	return list
}

// coreGroup is the core group in names of StorageVersion objects.
const coreGroup = "core"

// storageVersions reads StorageVersion objects like v1.30.14 (addSVToMap in
// pkg/util/peerproxy/peerproxy_handler.go): which servers serve each version of a resource. If an
// object's name is not a group and a resource, v1.30.14 panics. Here this is an error, and the
// object is left out.
func storageVersions(objects []*apiserverinternalv1alpha1.StorageVersion) (proxy.StorageVersions, []error) {
	event := proxy.StorageVersions{Served: map[schema.GroupVersionResource][]proxy.ServerID{}}
	var errs []error
	for _, o := range objects {
		gr, err := storageVersionResource(o.Name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, s := range o.Status.StorageVersions {
			if s.APIServerID == "" {
				continue
			}
			for _, v := range s.ServedVersions {
				gvr := gr.WithVersion(withoutGroup(v))
				event.Served[gvr] = append(event.Served[gvr], proxy.ServerID(s.APIServerID))
			}
		}
	}
	for gvr, ids := range event.Served {
		slices.Sort(ids)
		event.Served[gvr] = slices.Compact(ids)
	}
	return event, errs
}

// storageVersionResource reads a name of the form <group>.<resource>, where the group may have
// dots.
func storageVersionResource(name string) (schema.GroupResource, error) {
	i := strings.LastIndexByte(name, '.')
	if i <= 0 || i == len(name)-1 {
		return schema.GroupResource{}, fmt.Errorf("read StorageVersion %q: its name is not <group>.<resource>; it is ignored", name)
	}
	gr := schema.GroupResource{Group: name[:i], Resource: name[i+1:]}
	if gr.Group == coreGroup {
		gr.Group = ""
	}
	return gr, nil
}

// withoutGroup returns "v1" for "v1" and for "group/v1". Like v1.30.14 it returns anything else
// unchanged.
func withoutGroup(v string) string {
	if group, version, ok := strings.Cut(v, "/"); ok && !strings.Contains(version, "/") && group != v {
		return version
	}
	return v
}

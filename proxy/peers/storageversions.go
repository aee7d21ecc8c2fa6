package peers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy"
)

// coreGroup is the core group in names of StorageVersion objects.
const coreGroup = "core"

// storageVersions reads StorageVersion objects as v1.30.14 does (addSVToMap in
// pkg/util/peerproxy/peerproxy_handler.go): who serves each version of a resource. An object whose
// name is not a group and resource, with which v1.30.14 panics, is an error and left out.
func storageVersions(objects []*apiserverinternalv1alpha1.StorageVersion) (proxy.StorageVersions, []error) {
	servers := map[schema.GroupVersionResource]map[proxy.ServerID]bool{}
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
				if servers[gvr] == nil {
					servers[gvr] = map[proxy.ServerID]bool{}
				}
				servers[gvr][proxy.ServerID(s.APIServerID)] = true
			}
		}
	}
	event := proxy.StorageVersions{Served: make(map[schema.GroupVersionResource][]proxy.ServerID, len(servers))}
	for gvr, ids := range servers {
		event.Served[gvr] = slices.Sorted(maps.Keys(ids))
	}
	return event, errs
}

// storageVersionResource reads a name: <group>.<resource>, where the group may have dots.
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

// withoutGroup reads "v1" or "group/v1". Like v1.30.14 it returns anything else unchanged.
func withoutGroup(v string) string {
	if group, version, ok := strings.Cut(v, "/"); ok && !strings.Contains(version, "/") && group != v {
		return version
	}
	return v
}

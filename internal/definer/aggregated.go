package definer

import (
	"context"
	"encoding/base64"
	"errors"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/extension"
	"github.com/skewproof/skewproof/internal/scenario"
)

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// find returns the index of an API among those that the extension apiserver serves, or -1.
func (d *Definer) find(what scenario.Definition) int {
	return slices.IndexFunc(d.apis, func(o scenario.Definition) bool { return o.Group == what.Group && o.Resource == what.Resource })
}

// register registers the versions of an aggregated API, or changes them. The extension apiserver
// serves a version from before its registration until after its removal, so that no request gets an
// error.
func (d *Definer) register(ctx context.Context, what scenario.Definition) error {
	var gone []string
	if i := d.find(what); i >= 0 {
		was := d.apis[i]
		gone = slices.DeleteFunc(slices.Clone(was.Versions), func(v string) bool { return slices.Contains(what.Versions, v) })
		d.apis[i].Versions = append(slices.Clone(what.Versions), gone...)
	} else {
		d.apis = append(d.apis, what)
	}
	address, ca, err := d.extend(ctx)
	if err != nil {
		return err
	}
	err = d.throughAny(ctx, func(ctx context.Context, client dynamic.Interface) error {
		if err := applied(ctx, client.Resource(services).Namespace(extension.ServiceNamespace), service(address)); err != nil {
			return err
		}
		for _, version := range what.Versions {
			if err := applied(ctx, client.Resource(apiServices), apiService(what, version, address, ca)); err != nil {
				return err
			}
		}
		for _, version := range gone {
			if err := removed(ctx, client.Resource(apiServices), version+"."+what.Group); err != nil {
				return err
			}
		}
		return wait.PollUntilContextCancel(ctx, definitionInterval, true, func(ctx context.Context) (bool, error) {
			for _, version := range what.Versions {
				now, err := client.Resource(apiServices).Get(ctx, version+"."+what.Group, metav1.GetOptions{})
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
	d.apis[d.find(what)].Versions = what.Versions
	_, _, err = d.extend(ctx)
	return err
}

// unregister removes all versions of an aggregated API, and then tells the extension apiserver.
func (d *Definer) unregister(ctx context.Context, what scenario.Definition) error {
	i := d.find(what)
	if i < 0 {
		return nil
	}
	versions := d.apis[i].Versions
	err := d.throughAny(ctx, func(ctx context.Context, client dynamic.Interface) error {
		for _, version := range versions {
			if err := removed(ctx, client.Resource(apiServices), version+"."+what.Group); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.apis = slices.Delete(d.apis, i, i+1)
	_, _, err = d.extend(ctx)
	return err
}

// extend makes the extension apiserver serve the present definitions.
func (d *Definer) extend(ctx context.Context) (netip.AddrPort, []byte, error) {
	extender, ok := d.cluster.(cluster.Extender)
	if !ok {
		return netip.AddrPort{}, nil, errors.New("this backend has no extension apiserver for aggregated APIs; use --backend local or sim")
	}
	return extender.Extend(ctx, d.apis)
}

func applied(ctx context.Context, api dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	_, err := api.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "skewproof", Force: true})
	return err
}

// removed deletes an object. It is not an error if the object does not exist.
func removed(ctx context.Context, api dynamic.ResourceInterface, name string) error {
	err := api.Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// service leads to the program by its address: a cluster IP would need kube-proxy.
func service(address netip.AddrPort) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": extension.ServiceName, "namespace": extension.ServiceNamespace},
		"spec":     map[string]any{"type": "ExternalName", "externalName": address.Addr().String()},
	}}
}

// preferredPriority is the versionPriority of the preferred version, above that of the others.
const (
	versionPriority   = int64(15)
	preferredPriority = int64(20)
)

// automanaged is the label by which kube-apiservers know the APIServices of their own APIs. Without
// a value, no server takes back a group version that it has built in (autoregister_controller.go in
// k8s.io/kube-aggregator, pkg/controllers/autoregister).
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

func apiService(of scenario.Definition, version string, address netip.AddrPort, ca []byte) *unstructured.Unstructured {
	group, priority := of.Group, versionPriority
	if version == of.Preferred {
		priority = preferredPriority
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiServices.GroupVersion().String(), "kind": "APIService",
		"metadata": map[string]any{"name": version + "." + group, "labels": map[string]any{automanaged: ""}},
		"spec": map[string]any{
			"group": group, "version": version, "groupPriorityMinimum": int64(1000), "versionPriority": priority,
			"caBundle": base64.StdEncoding.EncodeToString(ca),
			"service":  map[string]any{"name": extension.ServiceName, "namespace": extension.ServiceNamespace, "port": int64(address.Port())},
		},
	}}
}

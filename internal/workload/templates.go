package workload

import (
	"encoding/json"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

type groupResource struct{ group, resource string }

// template makes valid objects of one resource. They are the smallest objects that are valid in
// every version.
type template struct {
	kind   string
	fields string // all fields except apiVersion, kind and metadata, in JSON; NAME stands for the object's name
	// unconditionalUpdate is true if a PUT may have no resourceVersion (AllowUnconditionalUpdate).
	unconditionalUpdate bool
	subresources        map[string]string // for each subresource that can be patched, a merge patch
}

// templates are the resources whose objects are created: some that every version serves, and those
// that were added or removed between 1.36 and 1.37 and can be created without other objects.
// Deployments have no replicas: in most runs nothing would run them, and in a whole cluster nothing
// should.
var templates = map[groupResource]template{
	{"", "configmaps"}:                {kind: "ConfigMap", fields: `"data":{"of":"NAME"}`, unconditionalUpdate: true},
	{"coordination.k8s.io", "leases"}: {kind: "Lease", fields: `"spec":{"holderIdentity":"NAME"}`},
	{"apps", "deployments"}: {
		kind: "Deployment",
		fields: `"spec":{"replicas":0,"selector":{"matchLabels":{"app":"NAME"}},"template":{"metadata":{"labels":{"app":"NAME"}},` +
			`"spec":{"containers":[{"image":"image.skewproof.invalid/none:none","name":"none"}]}}}`,
		unconditionalUpdate: true,
		subresources:        map[string]string{"status": `{"status":{"observedGeneration":1}}`, "scale": `{"spec":{"replicas":0}}`},
	},
	{"storage.k8s.io", "volumeattributesclasses"}: {
		kind: "VolumeAttributesClass", fields: `"driverName":"driver.skewproof.invalid","parameters":{"of":"skewproof"}`,
	},
	{"resource.k8s.io", "devicetaintrules"}: {
		kind: "DeviceTaintRule",
		fields: `"spec":{"deviceSelector":{"driver":"driver.skewproof.invalid"},` +
			`"taint":{"effect":"NoSchedule","key":"skewproof.invalid/taint"}}`,
		subresources: map[string]string{"status": `{"status":{"conditions":[]}}`},
	},
	{"storagemigration.k8s.io", "storageversionmigrations"}: {
		kind:         "StorageVersionMigration",
		fields:       `"spec":{"resource":{"group":"skewproof.invalid","resource":"nosuchthings"}}`,
		subresources: map[string]string{"status": `{"status":{"conditions":[]}}`},
	},
}

// metadata is the metadata of an object in JSON.
type metadata struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Labels      map[string]string `json:"labels"`
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
}

// object returns a valid object of the resource, in JSON, with additional metadata, if any.
func object(r history.Resource, name string, more metadata) string {
	t := templates[groupResource{r.Group, r.Resource}]
	if more.Labels == nil {
		more.Labels = map[string]string{}
	}
	more.Labels[ManagedBy], more.Name, more.Namespace = ManagedByValue, name, namespaceOf(r)
	meta, err := json.Marshal(more)
	if err != nil { // cannot happen: the metadata has only strings
		panic(err)
	}
	version := r.Version
	if r.Group != "" {
		version = r.Group + "/" + r.Version
	}
	return `{"apiVersion":"` + version + `","kind":"` + t.kind + `","metadata":` + string(meta) + `,` +
		strings.ReplaceAll(t.fields, "NAME", name) + `}`
}

package workload

import (
	"encoding/json"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

type groupResource struct{ group, resource string }

// template makes valid objects of one resource, the smallest that are valid in every version.
type template struct {
	kind   string
	fields string // all but apiVersion, kind and metadata, in JSON; NAME is that of the object
	// unconditionalUpdate: a PUT may lack resourceVersion (AllowUnconditionalUpdate).
	unconditionalUpdate bool
	subresources        map[string]string // a merge patch for each that can be patched
}

// templates are the resources that objects are created of: some that every version serves, and
// those that came or went between 1.36 and 1.37 and can be created without other objects.
// Deployments have no replicas: nothing would run them, and in a whole cluster nothing should.
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

// metadata is that of an object as JSON has it.
type metadata struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Labels      map[string]string `json:"labels"`
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
}

// object is a valid object of the resource, in JSON, with more metadata, if any.
func object(r history.Resource, name string, more metadata) string {
	t := templates[groupResource{r.Group, r.Resource}]
	if more.Labels == nil {
		more.Labels = map[string]string{}
	}
	more.Labels[ManagedBy], more.Name, more.Namespace = ManagedByValue, name, namespaceOf(r)
	meta, err := json.Marshal(more)
	if err != nil { // words only: cannot be
		panic(err)
	}
	version := r.Version
	if r.Group != "" {
		version = r.Group + "/" + r.Version
	}
	return `{"apiVersion":"` + version + `","kind":"` + t.kind + `","metadata":` + string(meta) + `,` +
		strings.ReplaceAll(t.fields, "NAME", name) + `}`
}

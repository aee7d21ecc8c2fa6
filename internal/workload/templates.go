package workload

type groupResource struct{ group, resource string }

// template makes valid objects of one resource, the smallest that validation lets through in every version of it.
type template struct {
	kind   string
	fields func(name string) map[string]any // all but apiVersion, kind and metadata
	// unconditionalUpdate: a PUT without resourceVersion is allowed (AllowUnconditionalUpdate in its strategy).
	unconditionalUpdate bool
	subresources        map[string]string // a merge patch for each that can be patched
}

// templates are the resources that objects are created of: some that every version serves, and those that came or went
// between 1.36 and 1.37 and can be created without other objects.
var templates = map[groupResource]template{
	{"", "configmaps"}: {
		kind:                "ConfigMap",
		fields:              func(name string) map[string]any { return map[string]any{"data": map[string]any{"of": name}} },
		unconditionalUpdate: true,
	},
	{"coordination.k8s.io", "leases"}: {
		kind: "Lease",
		fields: func(name string) map[string]any {
			return map[string]any{"spec": map[string]any{"holderIdentity": name}}
		},
	},
	{"apps", "deployments"}: {
		kind:                "Deployment",
		fields:              deploymentFields,
		unconditionalUpdate: true,
		subresources: map[string]string{
			"status": `{"status":{"observedGeneration":1}}`,
			"scale":  `{"spec":{"replicas":0}}`,
		},
	},
	{"storage.k8s.io", "volumeattributesclasses"}: {
		kind: "VolumeAttributesClass",
		fields: func(string) map[string]any {
			return map[string]any{"driverName": "driver.skewproof.invalid", "parameters": map[string]any{"of": "skewproof"}}
		},
	},
	{"resource.k8s.io", "devicetaintrules"}: {
		kind: "DeviceTaintRule",
		fields: func(string) map[string]any {
			return map[string]any{"spec": map[string]any{
				"deviceSelector": map[string]any{"driver": "driver.skewproof.invalid"},
				"taint":          map[string]any{"key": "skewproof.invalid/taint", "effect": "NoSchedule"},
			}}
		},
		subresources: map[string]string{"status": `{"status":{"conditions":[]}}`},
	},
	{"storagemigration.k8s.io", "storageversionmigrations"}: {
		kind: "StorageVersionMigration",
		fields: func(string) map[string]any {
			return map[string]any{"spec": map[string]any{
				"resource": map[string]any{"group": "skewproof.invalid", "resource": "nosuchthings"},
			}}
		},
		subresources: map[string]string{"status": `{"status":{"conditions":[]}}`},
	},
}

// deploymentFields has no replicas: nothing would run them, and in a whole cluster nothing should.
func deploymentFields(name string) map[string]any {
	labels := map[string]any{"app": name}
	return map[string]any{"spec": map[string]any{
		"replicas": int64(0),
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{"containers": []any{
				map[string]any{"name": "none", "image": "image.skewproof.invalid/none:none"},
			}},
		},
	}}
}

package clients

import (
	"encoding/json"

	"github.com/skewproof/skewproof/internal/ownership"
)

// Object makes an object of that name, as JSON.
type Object func(name string) (string, error)

// The resources of operations. Of the first three, the older of the default versions serves none.
const (
	bundles    = "clustertrustbundles.certificates.k8s.io"
	requests   = "podcertificaterequests.certificates.k8s.io"
	migrations = "storageversionmigrations.storagemigration.k8s.io"
)

// labelled is a label that operations write and truths read.
const labelled = "skewproof.example/state"

func object(apiVersion, kind, group, resource, namespace, label string) Object {
	return func(name string) (string, error) {
		fields, err := ownership.Fields(group, resource, name)
		if err != nil {
			return "", err
		}
		metadata := map[string]any{"name": name, "labels": map[string]any{labelled: label}}
		if namespace != "" {
			metadata["namespace"] = named(namespace, name)
		}
		fields["apiVersion"], fields["kind"], fields["metadata"] = apiVersion, kind, metadata
		return encode(fields)
	}
}

func encode(fields map[string]any) (string, error) {
	text, err := json.Marshal(fields)
	return string(text), err
}

// bundle is a ClusterTrustBundle with a value of the label.
func bundle(label string) Object {
	return object("certificates.k8s.io/v1", "ClusterTrustBundle", "certificates.k8s.io", "clustertrustbundles", "", label)
}

// misspelled is a ClusterTrustBundle with a field that there is not.
func misspelled(name string) (string, error) {
	text, err := bundle("made")(name)
	if err != nil {
		return "", err
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return "", err
	}
	fields["spec"].(map[string]any)["trustBundel"] = "none"
	return encode(fields)
}

// request is a PodCertificateRequest in the namespace of its name.
var request = object("certificates.k8s.io/v1", "PodCertificateRequest", "certificates.k8s.io", "podcertificaterequests", "{name}", "made")

// workload is a Deployment of no pods.
var workload = object("apps/v1", "Deployment", "apps", "deployments", "default", "made")

// settings is a ConfigMap.
var settings = object("v1", "ConfigMap", "", "configmaps", "default", "made")

// taintRule is a DeviceTaintRule for the devices of a driver that there is not.
func taintRule(label string) Object {
	return func(name string) (string, error) {
		return encode(map[string]any{
			"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule",
			"metadata": map[string]any{"name": name, "labels": map[string]any{labelled: label}},
			"spec": map[string]any{
				"deviceSelector": map[string]any{"driver": "driver.skewproof.invalid"},
				"taint":          map[string]any{"key": "skewproof.example/tested", "value": "yes", "effect": "NoSchedule"},
			},
		})
	}
}

// ingress is an Ingress of a class that no controller has.
func ingress(label string) Object {
	return func(name string) (string, error) {
		return encode(map[string]any{
			"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
			"metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{labelled: label}},
			"spec": map[string]any{
				"ingressClassName": "skewproof.invalid",
				"defaultBackend":   map[string]any{"service": map[string]any{"name": "none", "port": map[string]any{"number": 80}}},
			},
		})
	}
}

// event is about the ClusterTrustBundle of its name.
func event(name string) (string, error) {
	return encode(map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": name, "namespace": "default"},
		"involvedObject": map[string]any{"apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle", "name": name},
		"reason":         "Tested", "message": "an event about " + name, "type": "Normal",
		"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
	})
}

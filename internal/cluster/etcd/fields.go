package etcd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// fieldsOf returns the paths of all fields of an object in etcd that have a value, sorted:
// "data.x", "spec.containers[0].image". It leaves out the fields of metadata that servers write by
// themselves. It returns nil for a type that it does not know. For values in protobuf it knows the
// types of the k8s.io/api with which this program was built. Fields newer than those are missing.
func fieldsOf(value []byte) []string {
	var content map[string]any
	if bytes.HasPrefix(value, protobufPrefix) {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
		if err != nil {
			return nil
		}
		if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o); err != nil {
			return nil
		}
	} else if json.Unmarshal(value, &content) != nil {
		return nil
	}
	delete(content, "apiVersion") // values in protobuf have none
	delete(content, "kind")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		maps.DeleteFunc(metadata, func(name string, _ any) bool { return slices.Contains(ofServers, name) })
	}
	return Paths(content)
}

// Paths returns the paths of all fields with a value in an object that was decoded from JSON,
// sorted.
func Paths(object any) (paths []string) {
	addFields("", object, &paths)
	slices.Sort(paths)
	return paths
}

// ofServers lists the fields of metadata that servers write by themselves.
var ofServers = []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid"}

func addFields(path string, value any, paths *[]string) {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			if path != "" {
				name = path + "." + name
			}
			addFields(name, field, paths)
		}
	case []any:
		for i, item := range v {
			addFields(fmt.Sprintf("%s[%d]", path, i), item, paths)
		}
	case nil: // a field without a value
	default:
		*paths = append(*paths, path)
	}
}

package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Object identifies an object in the answer to a verb, in JSON: its resource version, a space and
// the hash of the bytes. Two answers about the same state of an object from the same server give
// the same text. The answer to a write has the time of the write, so its hash leaves out the times
// of metadata.managedFields. Object returns "" for a body that is no JSON object.
func Object(body []byte, verb string) string {
	var object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body, &object) != nil {
		return ""
	}
	if verb != "get" {
		body = withoutTimes(body)
	}
	return fmt.Sprintf("%q %s", object.Metadata.ResourceVersion, Hash(body))
}

// withoutTimes returns an object without the times in metadata.managedFields. It returns what is
// not the JSON of an object unchanged.
func withoutTimes(body []byte) []byte {
	var object map[string]any
	numbers := json.NewDecoder(bytes.NewReader(body))
	numbers.UseNumber() // a float64 would not keep every digit
	if numbers.Decode(&object) != nil {
		return body
	}
	metadata, _ := object["metadata"].(map[string]any)
	managed, _ := metadata["managedFields"].([]any)
	for _, m := range managed {
		if entry, ok := m.(map[string]any); ok {
			delete(entry, "time")
		}
	}
	plain, err := json.Marshal(object)
	if err != nil {
		return body
	}
	return plain
}

// ownHeaders are the headers that each server, or each connection, adds with values of its own.
var ownHeaders = []string{"Audit-Id", "Connection", "Content-Length", "Date", "Keep-Alive", "Transfer-Encoding"}

// flowControlHeaders begins the names of headers in which a server names its objects of API
// Priority and Fairness (k8s.io/api/flowcontrol/v1,
// ResponseHeaderMatchedPriorityLevelConfigurationUID).
const flowControlHeaders = "X-Kubernetes-Pf-"

// Headers are the headers that a proxy must return as it gets them, a line each, sorted. A value
// that is there twice counts once: each server on the way may add its own.
func Headers(h http.Header) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if canonical := http.CanonicalHeaderKey(name); slices.Contains(ownHeaders, canonical) ||
			strings.HasPrefix(canonical, flowControlHeaders) {
			continue
		}
		values := slices.Clone(h[name])
		slices.Sort(values)
		lines = append(lines, name+": "+strings.Join(slices.Compact(values), ", "))
	}
	return strings.Join(lines, "\n")
}

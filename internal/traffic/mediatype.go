package traffic

import (
	"encoding/json"
	"mime"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// special is what of an Accept header is worth recording: nothing of one that asks for JSON, or anything.
func special(accept string) string {
	for _, one := range strings.Split(accept, ",") {
		switch kind, _, _ := strings.Cut(one, ";"); strings.TrimSpace(kind) {
		case "", mediaJSON, "*/*":
		default:
			return accept
		}
	}
	return ""
}

// mediaType is that of a Content-Type header without its parameters, "" if it is JSON or there is none.
func mediaType(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind == mediaJSON {
		return ""
	}
	return kind
}

// AsJSON makes JSON of an API object in YAML or CBOR, so that one reader does for all. Anything else, and what cannot be read, stays as it is.
func AsJSON(mediaType string, body []byte) []byte {
	switch mediaType {
	case mediaYAML:
		if converted, err := yaml.ToJSON(body); err == nil {
			return converted
		}
	case mediaCBOR:
		var object any
		if direct.Unmarshal(body, &object) == nil {
			if converted, err := json.Marshal(object); err == nil {
				return converted
			}
		}
	}
	return body
}

package answer

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/skewproof/skewproof/internal/history"
)

// selfDescribedCBOR is the tag before whatever a server writes in CBOR (RFC 8949, 3.4.6).
var selfDescribedCBOR = []byte{0xd9, 0xd9, 0xf7}

// ContentOf says whether a body is whole that came to its end. An empty body is not whole in a
// media type that needs bytes to say anything. Of other types nothing can be said: YAML and text
// that were cut short may be YAML and text.
func ContentOf(contentType string, body []byte) history.Content {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return history.ContentUnknown
	}
	whole := false
	switch kind {
	case runtime.ContentTypeJSON:
		whole = json.Valid(body)
	case runtime.ContentTypeCBOR:
		var object any
		whole = direct.Unmarshal(bytes.TrimPrefix(body, selfDescribedCBOR), &object) == nil
	case runtime.ContentTypeProtobuf:
		var unknown runtime.Unknown
		envelope, magic := bytes.CutPrefix(body, protobufMagic)
		whole = magic && unknown.Unmarshal(envelope) == nil
	default:
		return history.ContentUnknown
	}
	if whole {
		return history.ContentWhole
	}
	return history.ContentBroken
}

// Accepted is what of an Accept header is worth recording: nothing if every type in it is JSON or
// anything, else the whole header.
func Accepted(accept string) string {
	for rest := accept; rest != ""; {
		var one string
		one, rest, _ = strings.Cut(rest, ",")
		switch kind, _, _ := strings.Cut(one, ";"); strings.TrimSpace(kind) {
		case "", runtime.ContentTypeJSON, "*/*":
		default:
			return accept
		}
	}
	return ""
}

// MediaType is that of a Content-Type header without its parameters, "" if it is JSON or there is
// none.
func MediaType(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind == runtime.ContentTypeJSON {
		return ""
	}
	return kind
}

// AsJSON converts an API object in YAML or CBOR to JSON, so that one reader does for all. Any other
// body, and one that cannot be read, stays as it is.
func AsJSON(mediaType string, body []byte) []byte {
	switch mediaType {
	case runtime.ContentTypeYAML:
		if converted, err := yaml.ToJSON(body); err == nil {
			return converted
		}
	case runtime.ContentTypeCBOR:
		var object any
		if direct.Unmarshal(body, &object) == nil {
			if converted, err := json.Marshal(object); err == nil {
				return converted
			}
		}
	}
	return body
}

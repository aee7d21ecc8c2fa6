package traffic

import (
	"bytes"
	"encoding/json"
	"mime"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/skewproof/skewproof/internal/history"
)

// selfDescribedCBOR is the tag before whatever a server writes in CBOR (RFC 8949, 3.4.6).
var selfDescribedCBOR = []byte{0xd9, 0xd9, 0xf7}

// ContentOf says whether a body, which came to its end, is whole. An empty one is not, of a type that can write nothing at all in no bytes. Of other
// types nothing can be said: YAML and text that were cut short may be YAML and text.
func ContentOf(contentType string, body []byte) history.Content {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return history.ContentUnknown
	}
	whole := false
	switch kind {
	case mediaJSON:
		whole = json.Valid(body)
	case mediaCBOR:
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

package traffic

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/skewproof/skewproof/internal/history"
)

const (
	mediaYAML = runtime.ContentTypeYAML
	mediaCBOR = runtime.ContentTypeCBOR
	mediaJSON = runtime.ContentTypeJSON
)

// accepted are what clients say they can read. Not every server writes every type of every resource: it then says so (406).
var accepted = []string{
	mediaJSON, mediaYAML, runtime.ContentTypeProtobuf, acceptProtobuf, mediaCBOR + "," + mediaJSON, mediaCBOR, acceptTable,
	"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
	runtime.ContentTypeProtobuf + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io," + mediaJSON, "*/*",
}

// body is a body of a media type. All mean the same empty object, or change nothing.
type body struct {
	mediaType string
	bytes     []byte
}

// cborEmpty is an empty map in CBOR (RFC 8949, 3.1).
var cborEmpty = []byte{0xa0}

// created are bodies that an object is to be made of, as a dry run. Validation refuses all of them, after routing.
var created = []body{
	{mediaJSON, []byte(`{}`)},
	{mediaYAML, []byte("metadata: {}\n")},
	{mediaCBOR, cborEmpty},
	{runtime.ContentTypeProtobuf, protobufMagic}, // an envelope with nothing in it
}

// patches are of all types that there are, on an object that is not there.
var patches = []body{
	{string(types.JSONPatchType), []byte(`[{"op":"add","path":"/metadata/labels","value":{}}]`)},
	{string(types.MergePatchType), []byte(`{"metadata":{"labels":{"merged":"yes"}}}`)},
	{string(types.StrategicMergePatchType), []byte(`{"metadata":{"labels":{"merged":"yes"}}}`)},
	{string(types.ApplyYAMLPatchType), []byte("metadata:\n  name: " + absentName + "\n")},
	{string(types.ApplyCBORPatchType), cborEmpty},
}

// format asks for a resource in one form after the other.
func (c *chooser) format(r history.Resource) (action, bool) {
	var forms []raw
	collection, one := path(r.GVR, "", "", ""), path(r.GVR, namespaceOf(r), absentName, "")
	for _, verb := range r.Verbs {
		switch verb {
		case "list":
			for _, a := range accepted {
				forms = append(forms, raw{path: collection, query: limit, header: accept(a)})
			}
		case "get":
			for _, a := range accepted {
				forms = append(forms, raw{path: one, header: accept(a)})
			}
		case "create":
			if _, special := validBody(r, ""); special {
				continue // an empty object is answered 500
			}
			for _, b := range created {
				forms = append(forms, raw{method: http.MethodPost, path: path(r.GVR, namespaceOf(r), "", ""), query: dryRun, header: contentType(b.mediaType), body: b.bytes})
			}
		case "patch":
			for _, b := range patches {
				forms = append(forms, raw{method: http.MethodPatch, path: one, query: applied, header: contentType(b.mediaType), body: b.bytes})
			}
		}
	}
	if len(forms) == 0 {
		return action{}, false
	}
	key := r.GVR.String() + " in every form"
	at := c.visited[key]
	c.visited[key]++
	// Steps that share no factor with the number of forms visit all of them, and mix verbs.
	form := forms[(at*7+at/len(forms))%len(forms)]
	if form.header["Content-Type"] != "" && c.random.IntN(2) == 0 {
		form.header["Accept"] = accepted[c.random.IntN(len(accepted))]
	}
	return form.action(), true
}

// applied is the query of a dry run that may be an apply patch.
var applied = map[string]string{"dryRun": "All", "fieldManager": fieldManager}

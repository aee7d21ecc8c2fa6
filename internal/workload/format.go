package workload

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/skewproof/skewproof/internal/history"
)

const (
	mediaJSON     = runtime.ContentTypeJSON
	mediaYAML     = runtime.ContentTypeYAML
	mediaCBOR     = runtime.ContentTypeCBOR
	mediaProtobuf = runtime.ContentTypeProtobuf

	jsonPatch      = string(types.JSONPatchType)
	mergePatch     = string(types.MergePatchType)
	strategicPatch = string(types.StrategicMergePatchType)
	applyPatch     = string(types.ApplyYAMLPatchType)

	acceptTable    = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	acceptProtobuf = mediaProtobuf + "," + mediaJSON // custom resources have no protobuf
)

// accepted are the Accept headers of clients. A server that cannot write any of the types answers
// 406.
var accepted = []string{
	mediaJSON, mediaYAML, mediaProtobuf, acceptProtobuf, mediaCBOR + "," + mediaJSON, mediaCBOR, acceptTable,
	"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
	mediaProtobuf + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io," + mediaJSON, "*/*",
}

// body is a body of a media type. All bodies mean the same empty object, or change nothing.
type body struct{ mediaType, bytes string }

// cborEmpty is an empty map in CBOR (RFC 8949, 3.1).
const cborEmpty = "\xa0"

// created are bodies of create requests, as dry runs. Validation rejects them after routing.
var created = []body{
	{mediaJSON, `{}`},
	{mediaYAML, "metadata: {}\n"},
	{mediaCBOR, cborEmpty},
	{mediaProtobuf, "k8s\x00"}, // an empty envelope
}

// patches are patches of all types, for an object that does not exist.
var patches = []body{
	{jsonPatch, `[{"op":"add","path":"/metadata/labels","value":{}}]`},
	{mergePatch, `{"metadata":{"labels":{"merged":"yes"}}}`},
	{strategicPatch, `{"metadata":{"labels":{"merged":"yes"}}}`},
	{applyPatch, "metadata:\n  name: " + absentName + "\n"},
	{string(types.ApplyCBORPatchType), cborEmpty},
}

// format returns the next of the requests for a resource in all its forms.
func (c *Chooser) format(r history.Resource) (Request, bool) {
	forms := c.once(r, "forms", formsOf)
	if len(forms) == 0 {
		return Request{}, false
	}
	at := c.turn(r.GVR, "forms")
	// A step that shares no factor with the number of forms visits all of them, and mixes verbs.
	form := forms[(at*7+at/len(forms))%len(forms)]
	if form.ContentType != "" && c.Choices.IntN(2) == 0 {
		form.Accept = accepted[c.Choices.IntN(len(accepted))]
	}
	return form, true
}

// formsOf returns the requests for a resource in every media type, for each of its verbs.
func formsOf(r history.Resource) (forms []Request) {
	collection := Request{GVR: r.GVR, Query: limit}
	one := Request{GVR: r.GVR, Namespace: namespaceOf(r), Name: absentName}
	add := func(form Request, verb, accept string, b body) {
		form.Verb, form.Accept, form.ContentType, form.Body = verb, accept, b.mediaType, b.bytes
		forms = append(forms, form)
	}
	for _, verb := range r.Verbs {
		switch verb {
		case "list":
			for _, a := range accepted {
				if strings.Contains(a, "as=Table") {
					add(collection, history.VerbTable, a, body{})
				} else {
					add(collection, verb, a, body{})
				}
			}
		case "get":
			for _, a := range accepted {
				add(one, verb, a, body{})
			}
		case "create":
			if _, special := validBody(r, ""); special {
				continue // an empty object would be answered 500
			}
			for _, b := range created {
				add(Request{GVR: r.GVR, Namespace: namespaceOf(r), Query: dryRun}, verb, "", b)
			}
		case "patch":
			one := one
			one.Query = dryRun + "&fieldManager=" + fieldManager // an apply patch needs it
			for _, b := range patches {
				add(one, verb, "", b)
			}
		}
	}
	return forms
}

package discovery

import (
	"bytes"
	"fmt"
	"mime"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	conversion "k8s.io/apiserver/pkg/apis/apidiscovery/v2"
)

// MaxBody is the size in bytes of the largest body that [Decode] and [DecodeOpenAPI] read. A
// document of 5,000 resources has about 2 MiB.
const MaxBody = 16 << 20

// MaxElements is the largest number of elements in a body that [Decode] reads. Without this bound,
// a body of MaxBody with nothing but empty elements would take gigabytes, because each takes some
// hundred bytes in memory. A document of 5,000 resources has about 95,000 elements. In JSON, each
// element but the first has a comma before it. In protobuf, each has at least two bytes.
const MaxElements = 1 << 19

// tooMany reports whether a body may have more elements than MaxElements.
func tooMany(mediaType string, body []byte) bool {
	if mediaType == runtime.ContentTypeProtobuf {
		return len(body) > 2*MaxElements
	}
	return bytes.Count(body, []byte(",")) > MaxElements
}

// Accept headers of aggregated discovery. Every kube-apiserver understands this order of
// parameters.
const (
	AcceptV2       = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	AcceptV2NoPeer = AcceptV2 + ";profile=nopeer"
	// AcceptV2Beta1 asks for the older format. Servers serve it up to 1.32, or up to 1.34 with
	// AggregatedDiscoveryRemoveBetaType off.
	AcceptV2Beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

// protobufMagic begins every protobuf body (k8s.io/apimachinery, runtime/serializer/protobuf).
var protobufMagic = []byte("k8s\x00")

// Decode reads an aggregated discovery document, v2 or v2beta1, in JSON or protobuf. The parameters
// of contentType (g, v, as) count only if the body has no kind and version. If contentType is
// empty, Decode guesses it from the body.
//
// Anything else is an error that says what the body is. A legacy list is an error too, because it
// has no resources. The body need not be trusted. The result shares no memory with it.
func Decode(contentType string, body []byte) (Groups, error) {
	if len(body) > MaxBody {
		return nil, fmt.Errorf("decode discovery: the body has %d bytes, more than the %d that are read", len(body), MaxBody)
	}
	mediaType, declared, err := mediaTypeOf(contentType, body)
	if err != nil {
		return nil, err
	}
	if tooMany(mediaType, body) {
		return nil, fmt.Errorf("decode discovery: the body of %d bytes may have more elements than the %d that are read", len(body), MaxElements)
	}
	object, actual, err := typed(mediaType).Decode(body, &declared, nil)
	switch {
	case actual != nil && actual.Kind != "" && (runtime.IsNotRegisteredError(err) || runtime.IsMissingVersion(err)):
		return nil, unexpectedKind(*actual)
	case runtime.IsMissingKind(err) || runtime.IsMissingVersion(err):
		return nil, fmt.Errorf("decode discovery: neither the body nor the content type %q has a kind and version", contentType)
	case err != nil:
		return nil, fmt.Errorf("decode discovery as %s: %w", mediaType, err)
	}
	switch list := object.(type) {
	case *apidiscoveryv2.APIGroupDiscoveryList:
		return list.Items, nil
	case *apidiscoveryv2beta1.APIGroupDiscoveryList:
		var converted apidiscoveryv2.APIGroupDiscoveryList
		if err := conversion.Convertv2beta1APIGroupDiscoveryListTov2APIGroupDiscoveryList(list, &converted, nil); err != nil {
			return nil, fmt.Errorf("decode discovery: convert v2beta1 to v2: %w", err)
		}
		return converted.Items, nil
	}
	return nil, unexpectedKind(*actual)
}

// mediaTypeOf returns the media type, JSON or protobuf, and the kind that the parameters declare.
func mediaTypeOf(contentType string, body []byte) (string, schema.GroupVersionKind, error) {
	if contentType == "" {
		if bytes.HasPrefix(body, protobufMagic) {
			return runtime.ContentTypeProtobuf, schema.GroupVersionKind{}, nil
		}
		return runtime.ContentTypeJSON, schema.GroupVersionKind{}, nil
	}
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", schema.GroupVersionKind{}, fmt.Errorf("decode discovery: content type %q: %w", contentType, err)
	}
	if mediaType != runtime.ContentTypeJSON && mediaType != runtime.ContentTypeProtobuf {
		return "", schema.GroupVersionKind{}, fmt.Errorf("decode discovery: the content type is %q; only %s and %s are understood",
			mediaType, runtime.ContentTypeJSON, runtime.ContentTypeProtobuf)
	}
	return mediaType, schema.GroupVersionKind{Group: params["g"], Version: params["v"], Kind: params["as"]}, nil
}

// unexpectedKind is the error of a body that is not an aggregated document.
func unexpectedKind(gvk schema.GroupVersionKind) error {
	switch gvk.Kind {
	case "APIGroupList", "APIVersions":
		return fmt.Errorf("decode discovery: a legacy %s, which lists no resources; the server has no aggregated discovery", gvk.Kind)
	case "Status":
		return fmt.Errorf("decode discovery: a Status, which is an error, not a discovery document")
	}
	return fmt.Errorf("decode discovery: %s %q, not an APIGroupDiscoveryList of apidiscovery.k8s.io/v2 or v2beta1",
		gvk.GroupVersion(), gvk.Kind)
}

// scheme has the two aggregated documents. The legacy lists do not need it, because they are
// encoded with the kind and version that they already have.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(apidiscoveryv2.AddToScheme(s))
	utilruntime.Must(apidiscoveryv2beta1.AddToScheme(s))
	return s
}()

// codecs has JSON, YAML and protobuf, in this order, like a kube-apiserver.
var codecs = serializer.NewCodecFactory(scheme)

// typed returns the serializer of a media type without parameters, or nil.
func typed(mediaType string) runtime.Serializer {
	if info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType); ok {
		return info.Serializer
	}
	return nil
}

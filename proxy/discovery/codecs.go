package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// scheme knows the two aggregated documents. The legacy lists are encoded with the kind and version that they carry
// themselves, so they need no place in it.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(apidiscoveryv2.AddToScheme(s))
	utilruntime.Must(apidiscoveryv2beta1.AddToScheme(s))
	return s
}()

// codecs offers JSON, YAML and protobuf, in this order, as a kube-apiserver does.
var codecs = serializer.NewCodecFactory(scheme)

// typed returns the serializer of a media type without parameters, or nil.
func typed(mediaType string) runtime.Serializer {
	if info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType); ok {
		return info.Serializer
	}
	return nil
}

package discovery

import (
	"net/http"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
)

// NoPeerProfile is the profile of the Accept header that asks for what one server serves by itself.
const NoPeerProfile = "nopeer"

// IsAggregated reports whether a value of Accept asks for aggregated discovery, v2 or v2beta1. As in kube-apiservers, an
// aggregated type that is acceptable at all goes before every legacy one (k8s.io/apiserver, pkg/endpoints/discovery/aggregated,
// wrapper.go).
func IsAggregated(accept string) bool {
	_, ok := negotiateAggregated(accept)
	return ok
}

// WantsNoPeer reports whether a value of Accept asks for what one server serves by itself: the first acceptable aggregated type has
// profile=nopeer. The same profile further down does not count.
func WantsNoPeer(accept string) bool {
	options, ok := negotiateAggregated(accept)
	return ok && options.Profile == NoPeerProfile
}

func negotiateAggregated(accept string) (negotiation.MediaTypeOptions, bool) {
	options, ok := negotiation.NegotiateMediaTypeOptions(accept, codecs.SupportedMediaTypes(), aggregatedOnly{})
	return options, ok && options.Convert != nil // nil if there is no Accept at all
}

// negotiated is the format of an answer.
type negotiated struct {
	options    negotiation.MediaTypeOptions
	serializer runtime.Serializer
	pretty     bool
}

// negotiate chooses the format of an answer to a request that restrictions admit.
func negotiate(r *http.Request, restrictions negotiation.EndpointRestrictions) (negotiated, error) {
	options, info, err := negotiation.NegotiateOutputMediaType(r, codecs, restrictions)
	if err != nil {
		return negotiated{}, err
	}
	pretty := info.PrettySerializer != nil && info.Serializer == info.PrettySerializer
	return negotiated{options: options, serializer: info.Serializer, pretty: pretty}, nil
}

// aggregatedOnly admits the aggregated types. The legacy ones have restrictions of their own:
// negotiation.DefaultEndpointRestrictions, which admit no conversion.
type aggregatedOnly struct{}

func (aggregatedOnly) AllowsMediaTypeTransform(_, _ string, gvk *schema.GroupVersionKind) bool {
	return gvk != nil && gvk.Group == apidiscoveryv2.GroupName && gvk.Kind == "APIGroupDiscoveryList" &&
		(gvk.Version == "v2" || gvk.Version == "v2beta1")
}
func (aggregatedOnly) AllowsServerVersion(string) bool       { return false }
func (aggregatedOnly) AllowsStreamSchema(schema string) bool { return schema == "watch" }

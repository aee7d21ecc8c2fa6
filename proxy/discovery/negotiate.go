package discovery

import (
	"mime"
	"net/http"
	"strings"

	"github.com/munnerz/goautoneg"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
)

// NoPeerProfile is the profile in an Accept header that asks for the discovery of one server alone.
const NoPeerProfile = "nopeer"

// IsAggregated reports whether an Accept header asks for aggregated discovery, v2 or v2beta1. As in
// kube-apiservers, an acceptable aggregated type is preferred to every legacy type
// (k8s.io/apiserver, pkg/endpoints/discovery/aggregated, wrapper.go).
func IsAggregated(accept string) bool {
	_, ok := negotiateAggregated(accept)
	return ok
}

// WantsNoPeer reports whether an Accept header asks for the discovery of one server alone: the
// first acceptable aggregated type has profile=nopeer. The profile of later types does not count.
func WantsNoPeer(accept string) bool { return Profile(accept, aggregatedOnly{}) == NoPeerProfile }

// Profile returns the profile of the first type in an Accept header that an endpoint allows.
func Profile(accept string, endpoint negotiation.EndpointRestrictions) string {
	// Releases before 1.35 do not return the profile, so the clauses are tried one by one.
	for _, clause := range goautoneg.ParseAccept(accept) {
		one := mime.FormatMediaType(clause.Type+"/"+clause.SubType, clause.Params)
		if options, ok := negotiation.NegotiateMediaTypeOptions(one, codecs.SupportedMediaTypes(), endpoint); ok && options.Convert != nil {
			return clause.Params["profile"]
		}
	}
	return ""
}

// negotiateAggregated returns the version of aggregated discovery that an Accept header asks for.
func negotiateAggregated(accept string) (version string, ok bool) {
	options, ok := negotiation.NegotiateMediaTypeOptions(accept, codecs.SupportedMediaTypes(), aggregatedOnly{})
	if !ok || options.Convert == nil { // nil without an Accept header
		return "", false
	}
	return options.Convert.Version, true
}

// aggregatedOnly admits the aggregated types. negotiation.DefaultEndpointRestrictions admits no
// conversion, and is for the legacy types.
type aggregatedOnly struct{}

func (aggregatedOnly) AllowsMediaTypeTransform(_, _ string, gvk *schema.GroupVersionKind) bool {
	return gvk != nil && gvk.Group == apidiscoveryv2.GroupName && gvk.Kind == "APIGroupDiscoveryList" &&
		(gvk.Version == "v2" || gvk.Version == "v2beta1")
}
func (aggregatedOnly) AllowsServerVersion(string) bool       { return false }
func (aggregatedOnly) AllowsStreamSchema(schema string) bool { return schema == "watch" }

// notModified reports whether If-None-Match matches the entity tag, so that the answer is 304 (RFC
// 9110, 13.1.2). The comparison is weak. "*" matches every tag. A malformed list is used up to its
// first error.
func notModified(r *http.Request, etag string) bool {
	for _, value := range r.Header.Values("If-None-Match") {
		if strings.Trim(value, " \t") == "*" {
			return true
		}
		for value != "" {
			var tag string
			tag, value = nextTag(value)
			if tag != "" && tag == etag {
				return true
			}
		}
	}
	return false
}

// nextTag returns the first entity tag of a list, without its W/, and the rest of the list. A tag
// may contain commas.
func nextTag(list string) (tag, rest string) {
	list = strings.TrimLeft(list, " \t,") // empty elements are allowed: RFC 9110, 5.6.1.2
	list = strings.TrimPrefix(list, "W/")
	if !strings.HasPrefix(list, `"`) {
		return "", ""
	}
	end := strings.IndexByte(list[1:], '"')
	if end < 0 {
		return "", ""
	}
	tag, rest = list[:end+2], strings.TrimLeft(list[end+2:], " \t")
	if rest != "" && rest[0] != ',' {
		return "", ""
	}
	return tag, rest
}

// acceptsGzip reads Accept-Encoding (RFC 9110, 12.5.3). Without the header it returns false.
func acceptsGzip(r *http.Request) bool {
	others := false
	for _, value := range r.Header.Values("Accept-Encoding") {
		for element := range strings.SplitSeq(value, ",") {
			coding, weight, _ := strings.Cut(element, ";")
			switch strings.ToLower(strings.Trim(coding, " \t")) {
			case "gzip", "x-gzip":
				return !isZero(weight)
			case "*":
				others = !isZero(weight)
			}
		}
	}
	return others
}

// isZero reports whether a weight is q=0, which means refusal. A malformed weight is not zero.
func isZero(weight string) bool {
	name, value, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(weight, " ", ""), "\t", ""), "=")
	return strings.EqualFold(name, "q") && value != "" && strings.Trim(value, "0.") == ""
}

package sidecar

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apiserver/pkg/authentication/user"
	clienttransport "k8s.io/client-go/transport"
)

// identityNames are the headers that identities are read from; extra are prefixes. Identities are written with the first of each.
type identityNames struct{ user, uid, group, extra []string }

func (o *Options) identityNames() identityNames {
	return identityNames{user: o.RequestHeaderUsername, uid: o.RequestHeaderUID, group: o.RequestHeaderGroup, extra: o.RequestHeaderExtraPrefix}
}

// The standard names, which are dropped whatever others are configured, as a kube-apiserver does.
var standardNames = identityNames{
	user: []string{"X-Remote-User"}, uid: []string{"X-Remote-Uid"}, group: []string{"X-Remote-Group"}, extra: []string{"X-Remote-Extra-"},
}

// drop deletes all identity headers, in every spelling that some server may read as one of them: any case, and underscores for hyphens.
func (n identityNames) drop(h http.Header) {
	for key := range h {
		if n.match(key) || standardNames.match(key) {
			delete(h, key)
		}
	}
}

func (n identityNames) match(key string) bool {
	key = folded(key)
	for _, names := range [][]string{n.user, n.uid, n.group} {
		for _, name := range names {
			if key == folded(name) {
				return true
			}
		}
	}
	for _, prefix := range n.extra {
		if strings.HasPrefix(key, folded(prefix)) {
			return true
		}
	}
	return false
}

func folded(key string) string {
	return strings.ReplaceAll(strings.ToLower(textproto.TrimString(key)), "_", "-")
}

// set tells who asks. The values are client-go's, escaping included, under the configured names.
func (n identityNames) set(r *http.Request, u user.Info) {
	n.drop(r.Header)
	bare := &http.Request{Header: http.Header{}}
	clienttransport.SetAuthProxyHeaders(bare, u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra())
	for key, values := range bare.Header {
		switch {
		case key == "X-Remote-User":
			key = n.user[0]
		case key == "X-Remote-Group":
			key = n.group[0]
		case key == "X-Remote-Uid" && len(n.uid) > 0:
			key = n.uid[0]
		case key == "X-Remote-Uid":
			continue
		default:
			key = n.extra[0] + key[len("X-Remote-Extra-"):]
		}
		r.Header[http.CanonicalHeaderKey(key)] = values
	}
}

// notCarriedByHeaders says what of an identity would not arrive by headers as it is, or "": who receives a field value takes white space off
// its ends (RFC 9110, 5.5), so that one identity would become another.
func notCarriedByHeaders(u user.Info) string {
	check := func(what, value string) string {
		switch {
		case value != textproto.TrimString(value):
			return fmt.Sprintf("the %s begins or ends with white space", what)
		case !httpguts.ValidHeaderFieldValue(value):
			return fmt.Sprintf("the %s contains control characters", what)
		}
		return ""
	}
	if trouble := check("user name", u.GetName()); trouble != "" {
		return trouble
	}
	if trouble := check("UID", u.GetUID()); trouble != "" {
		return trouble
	}
	for _, g := range u.GetGroups() {
		if trouble := check("name of a group", g); trouble != "" {
			return trouble
		}
	}
	for _, values := range u.GetExtra() {
		for _, value := range values {
			if trouble := check("value of an extra attribute", value); trouble != "" {
				return trouble
			}
		}
	}
	return ""
}

package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// IdentityHeaders names the headers in which a server reads the user from a front proxy. The
// server's flags for these names are --requestheader-username-headers, -group-headers and
// -extra-headers-prefix. An empty field means the name that kube-apiserver uses
// (client-go/transport, SetAuthProxyHeaders): X-Remote-User, X-Remote-Group and X-Remote-Extra-.
type IdentityHeaders struct {
	User, Group, ExtraPrefix string
}

// UIDHeader is the header in which a server reads the UID of a user from a front proxy.
const UIDHeader = "X-Remote-Uid"

// WithDefaults returns the names, of which none is empty.
func (n IdentityHeaders) WithDefaults() IdentityHeaders {
	return IdentityHeaders{
		User: cmp.Or(n.User, "X-Remote-User"), Group: cmp.Or(n.Group, "X-Remote-Group"), ExtraPrefix: cmp.Or(n.ExtraPrefix, "X-Remote-Extra-"),
	}
}

// canonical returns the names in canonical form, of which none is empty.
func (n IdentityHeaders) canonical() (IdentityHeaders, error) {
	n = n.WithDefaults()
	for _, name := range []*string{&n.User, &n.Group, &n.ExtraPrefix} {
		if !httpguts.ValidHeaderFieldName(*name) {
			return n, fmt.Errorf("make a proxy handler: %q in Config.IdentityHeaders is not a header name", *name)
		}
		*name = http.CanonicalHeaderKey(*name)
	}
	return n, nil
}

// is reports whether a canonical header names the user. The default names always count, because the
// peer may read them.
func (n IdentityHeaders) is(name string) bool {
	return strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, n.ExtraPrefix) || name == n.User || name == n.Group
}

var errNobody = errors.New("the request has no authenticated user")

// set writes the user into the headers for a peer. It refuses a user that headers cannot carry
// unchanged, because the peer would see another user. Without a name, the peer would take the front
// proxy for the user. White space at the ends of a value is lost (RFC 9110, 5.5).
func (n IdentityHeaders) set(h http.Header, u user.Info) error {
	if u == nil || u.GetName() == "" {
		return errNobody
	}
	add := func(what, header string, values ...string) error {
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) || strings.Trim(v, " \t") != v {
				return fmt.Errorf("the user's %s %q cannot be sent to a peer unchanged: "+
					"a header holds no control characters and no white space at its ends", what, v)
			}
			h[header] = append(h[header], v)
		}
		return nil
	}
	if err := add("name", n.User, u.GetName()); err != nil {
		return err
	}
	if uid := u.GetUID(); uid != "" {
		if err := add("UID", UIDHeader, uid); err != nil {
			return err
		}
	}
	if err := add("group", n.Group, u.GetGroups()...); err != nil {
		return err
	}
	extra := u.GetExtra()
	if one, other := wire.KeysThatDifferInCase(extra); other != "" {
		return fmt.Errorf("the user's extra keys %q and %q cannot be sent to a peer unchanged: header names have no case", one, other)
	}
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		if err := add("extra "+key, http.CanonicalHeaderKey(n.ExtraPrefix+escapeExtraKey(key)), extra[key]...); err != nil {
			return err
		}
	}
	return nil
}

// escapeExtraKey percent-encodes the percent sign and every byte that a header name cannot hold.
// The reader expects this (k8s.io/apiserver, authentication/request/headerrequest).
func escapeExtraKey(key string) string {
	if !strings.ContainsFunc(key, func(r rune) bool { return r == '%' || !httpguts.IsTokenRune(r) }) {
		return key
	}
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c != '%' && httpguts.IsTokenRune(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

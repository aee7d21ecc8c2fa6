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
// server's flags for these names are --requestheader-username-headers, -uid-headers, -group-headers
// and -extra-headers-prefix. An empty field means the name in [DefaultIdentityHeaders].
type IdentityHeaders struct {
	User, UID, Group, ExtraPrefix string
}

// DefaultIdentityHeaders are the names that kube-apiserver uses (client-go/transport,
// SetAuthProxyHeaders).
func DefaultIdentityHeaders() IdentityHeaders {
	return IdentityHeaders{User: "X-Remote-User", UID: "X-Remote-Uid", Group: "X-Remote-Group", ExtraPrefix: "X-Remote-Extra-"}
}

// identityHeaders are IdentityHeaders in which every name is set and canonical.
type identityHeaders IdentityHeaders

func newIdentityHeaders(c IdentityHeaders) (names identityHeaders, err error) {
	defaults := DefaultIdentityHeaders()
	name := func(field, configured, unset string) string {
		configured = cmp.Or(configured, unset)
		if err == nil && !httpguts.ValidHeaderFieldName(configured) {
			err = fmt.Errorf("make a proxy handler: Config.IdentityHeaders.%s is %q, which is not a header name", field, configured)
		}
		return http.CanonicalHeaderKey(configured)
	}
	names.User = name("User", c.User, defaults.User)
	names.UID = name("UID", c.UID, defaults.UID)
	names.Group = name("Group", c.Group, defaults.Group)
	names.ExtraPrefix = name("ExtraPrefix", c.ExtraPrefix, defaults.ExtraPrefix)
	return names, err
}

// is reports whether a canonical header names the user. The default names always count, because the
// peer may read them.
func (n identityHeaders) is(name string) bool {
	return strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, n.ExtraPrefix) || name == n.User || name == n.UID || name == n.Group
}

var errNobody = errors.New("the request has no authenticated user")

// set writes the user into the headers for a peer. It refuses a user that headers cannot carry
// unchanged, because the peer would see another user. Without a name, the peer would take the front
// proxy for the user. White space at the ends of a value is lost (RFC 9110, 5.5).
func (n identityHeaders) set(h http.Header, u user.Info) error {
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
		if err := add("UID", n.UID, uid); err != nil {
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

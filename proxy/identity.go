package proxy

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apiserver/pkg/authentication/user"
)

// IdentityHeaders names the headers in which a front proxy tells a server who the user is; the server reads them by its
// --requestheader-username-headers, -uid-headers, -group-headers and -extra-headers-prefix. An empty field is that of
// [DefaultIdentityHeaders].
type IdentityHeaders struct {
	User, UID, Group, ExtraPrefix string
}

// DefaultIdentityHeaders are those that every kube-apiserver's peer proxy sends (k8s.io/client-go/transport, SetAuthProxyHeaders).
func DefaultIdentityHeaders() IdentityHeaders {
	return IdentityHeaders{User: "X-Remote-User", UID: "X-Remote-Uid", Group: "X-Remote-Group", ExtraPrefix: "X-Remote-Extra-"}
}

// identityHeaders are canonical and complete.
type identityHeaders IdentityHeaders

func newIdentityHeaders(c IdentityHeaders) (identityHeaders, error) {
	names, defaults := identityHeaders(c), DefaultIdentityHeaders()
	for _, f := range []struct {
		name    *string
		unset   string
		meaning string
	}{
		{&names.User, defaults.User, "User"},
		{&names.UID, defaults.UID, "UID"},
		{&names.Group, defaults.Group, "Group"},
		{&names.ExtraPrefix, defaults.ExtraPrefix, "ExtraPrefix"},
	} {
		if *f.name == "" {
			*f.name = f.unset
		}
		if !httpguts.ValidHeaderFieldName(*f.name) {
			return names, fmt.Errorf("make a proxy handler: Config.IdentityHeaders.%s is %q, which is no header name", f.meaning, *f.name)
		}
		*f.name = http.CanonicalHeaderKey(*f.name)
	}
	return names, nil
}

// is reports whether a header says who asks, in any spelling. The default names do even where others are configured: the peer may read
// them.
func (n identityHeaders) is(name string) bool {
	return hasPrefixFold(name, "X-Remote-") || hasPrefixFold(name, n.ExtraPrefix) ||
		strings.EqualFold(name, n.User) || strings.EqualFold(name, n.UID) || strings.EqualFold(name, n.Group)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

var errNobody = errors.New("the request has no authenticated user")

// set says for whom is asked. It refuses what a header cannot carry unchanged, because the peer would see somebody else: without a name it
// would take the front proxy itself for the user, and white space at the ends is lost (RFC 9110, 5.5).
func (n identityHeaders) set(h http.Header, u user.Info) error {
	if u == nil || u.GetName() == "" {
		return errNobody
	}
	if err := checkIdentity("name", u.GetName()); err != nil {
		return err
	}
	h[n.User] = []string{u.GetName()}
	if uid := u.GetUID(); uid != "" {
		if err := checkIdentity("UID", uid); err != nil {
			return err
		}
		h[n.UID] = []string{uid}
	}
	if groups := u.GetGroups(); len(groups) > 0 {
		for _, g := range groups {
			if err := checkIdentity("group", g); err != nil {
				return err
			}
		}
		h[n.Group] = slices.Clone(groups)
	}
	extra := u.GetExtra()
	if len(extra) == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		name := http.CanonicalHeaderKey(n.ExtraPrefix + escapeExtraKey(key))
		for _, v := range extra[key] {
			if err := checkIdentity("extra "+key, v); err != nil {
				return err
			}
			h[name] = append(h[name], v)
		}
	}
	return nil
}

func checkIdentity(what, value string) error {
	if !httpguts.ValidHeaderFieldValue(value) || strings.Trim(value, " \t") != value {
		return fmt.Errorf("the user's %s %q cannot be told to a peer unchanged: a header holds no control characters, and no white space at its ends", what, value)
	}
	return nil
}

// escapeExtraKey percent-encodes what a header name cannot hold, and the percent sign itself, as the reader expects
// (k8s.io/apiserver, authentication/request/headerrequest).
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

package sidecar

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	clienttransport "k8s.io/client-go/transport"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// frontProxies trusts the identity headers of a caller if the caller's client certificate is signed
// by the request-header authorities and has an allowed name. Peers are such callers. Source:
// k8s.io/apiserver, NewDynamicVerifyOptionsSecure, which verifies the chain for every request.
type frontProxies struct {
	ca      *authorities
	allowed []string // common names; empty: all
	headers authenticator.Request
	// hopHeaders is for requests that a peer passes on. A peer may have fewer names in its flags, and
	// removes only headers whose names it knows.
	hopHeaders authenticator.Request
}

func (f *frontProxies) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if ok, err := f.verify(r); !ok {
		return nil, false, err
	}
	if len(r.Header.Values(proxy.HopHeader)) > 0 {
		return f.hopHeaders.AuthenticateRequest(r)
	}
	return f.headers.AuthenticateRequest(r)
}

// readHeaders reads identities from headers with these names.
func readHeaders(user, uid, group, extra func() []string) authenticator.Request {
	of := func(names func() []string) headerrequest.StringSliceProvider {
		return headerrequest.StringSliceProviderFunc(names)
	}
	return headerrequest.NewDynamic(of(user), of(uid), of(group), of(extra))
}

// verify reports whether the caller is a front proxy. A caller without a certificate is not an
// error.
func (f *frontProxies) verify(r *http.Request) (bool, error) {
	pool := f.ca.pool()
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || pool == nil {
		return false, nil
	}
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return f.verifyChain(r.TLS.PeerCertificates, pool).at(time.Now())
	}
	// The certificate of a connection never changes (TLS 1.2 renegotiation is off). So its chain is
	// verified only once, until the authorities change or a certificate of the chain expires.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verdict.pool != pool || time.Now().After(c.verdict.until) {
		c.verdict = f.verifyChain(r.TLS.PeerCertificates, pool)
	}
	return c.verdict.at(time.Now())
}

// verdict is the result of verifying a chain.
type verdict struct {
	pool  *x509.CertPool // the authorities with which the chain was verified
	until time.Time      // when the first certificate of the chain expires; zero if the chain was refused
	err   error
}

func (v verdict) at(now time.Time) (bool, error) {
	switch {
	case v.err != nil:
		return false, v.err
	case now.After(v.until):
		return false, errors.New("verify the front-proxy certificate: it has expired")
	}
	return true, nil
}

func (f *frontProxies) verifyChain(chain []*x509.Certificate, pool *x509.CertPool) verdict {
	options, _ := f.ca.verifyOptions()
	options.Roots = pool
	options.Intermediates = x509.NewCertPool()
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	chains, err := chain[0].Verify(options)
	if err != nil {
		return verdict{pool: pool, err: fmt.Errorf("verify the front-proxy certificate: %w", err)}
	}
	if name := chain[0].Subject.CommonName; len(f.allowed) > 0 && !slices.Contains(f.allowed, name) {
		return verdict{pool: pool,
			err: fmt.Errorf("verify the front-proxy certificate: its common name %q is not in --requestheader-allowed-names", name)}
	}
	first := slices.MinFunc(chains[0], func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	return verdict{pool: pool, until: first.NotAfter}
}

// connection stores the verdict about the client of a connection.
type connection struct {
	mu      sync.Mutex
	verdict verdict
}

type connectionKey struct{}

// withConnection is for [http.Server.ConnContext].
func withConnection(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{})
}

// identityNames are the names of the headers from which identities are read; extra are prefixes.
// Identities are written with the first name of each kind.
type identityNames struct{ user, uid, group, extra []string }

func (o *Options) identityNames() *identityNames {
	return &identityNames{user: o.RequestHeaderUsername, uid: o.RequestHeaderUID, group: o.RequestHeaderGroup,
		extra: o.RequestHeaderExtraPrefix}
}

// standardNames are removed from requests even if other names are configured, as in a
// kube-apiserver.
var standardNames = &identityNames{
	user: []string{"X-Remote-User"}, uid: []string{"X-Remote-Uid"}, group: []string{"X-Remote-Group"}, extra: []string{"X-Remote-Extra-"},
}

// match reports whether a header has one of these names, in any spelling that a server may accept
// for it: in any case, and with underscores for hyphens.
func (n *identityNames) match(key string) bool {
	key = textproto.TrimString(key)
	is := func(name string) bool { return len(key) == len(name) && beginsFolded(key, name) }
	begins := func(prefix string) bool { return beginsFolded(key, prefix) }
	return slices.ContainsFunc(n.user, is) || slices.ContainsFunc(n.uid, is) || slices.ContainsFunc(n.group, is) ||
		slices.ContainsFunc(n.extra, begins)
}

// beginsFolded reports whether a key begins with a prefix after both are folded (see folded).
func beginsFolded(key, prefix string) bool {
	if len(key) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if foldedByte(key[i]) != foldedByte(prefix[i]) {
			return false
		}
	}
	return true
}

func foldedByte(c byte) byte {
	switch {
	case c == '_':
		return '-'
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return c
}

func folded(key string) string {
	return strings.ReplaceAll(strings.ToLower(textproto.TrimString(key)), "_", "-")
}

// set writes the identity to a request without identity headers, under the configured names. The
// values and their escaping are client-go's.
func (n *identityNames) set(r *http.Request, u user.Info) {
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

// notCarriedByHeaders returns the part of an identity that would not arrive unchanged in headers,
// or "". The recipient removes white space around a field value (RFC 9110, 5.5), so one identity
// could become another.
func notCarriedByHeaders(u user.Info) string {
	for _, part := range []struct {
		what   string
		values []string
	}{
		{"user name", []string{u.GetName()}},
		{"UID", []string{u.GetUID()}},
		{"name of a group", u.GetGroups()},
		{"value of an extra attribute", slices.Concat(slices.Collect(maps.Values(u.GetExtra()))...)},
	} {
		for _, value := range part.values {
			switch {
			case value != textproto.TrimString(value):
				return fmt.Sprintf("the %s begins or ends with white space", part.what)
			case !httpguts.ValidHeaderFieldValue(value):
				return fmt.Sprintf("the %s contains control characters", part.what)
			}
		}
	}
	if one, other := wire.KeysThatDifferInCase(u.GetExtra()); other != "" {
		return fmt.Sprintf("the keys %q and %q of extra attributes differ in case only", one, other)
	}
	return ""
}

package apiserver

import (
	"crypto/x509"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
)

// fromPeer reports whether the caller of a request is a front proxy, as peers are; see
// [frontProxy]. The chain has verified the same before it believed who the user is; it does not
// tell its result.
//
// The handler asks it only about requests that claim to be forwarded. If they are, their audit
// events get the name of the certificate. No other name of the caller is certain, because a
// released server forwards what its client has written into any other header.
func fromPeer(c *authenticatorfactory.RequestHeaderConfig) func(*http.Request) bool {
	frontProxy := frontProxy(c)
	return func(r *http.Request) bool {
		name, ok := frontProxy(r)
		if ok {
			audit.AddAuditAnnotation(r.Context(), ForwardedByAnnotation, name)
		}
		return ok
	}
}

// frontProxy returns the common name of the caller's client certificate, and whether the caller is
// a front proxy: the certificate is signed by the request-header authority, and has an allowed
// name.
func frontProxy(c *authenticatorfactory.RequestHeaderConfig) func(*http.Request) (name string, ok bool) {
	return func(r *http.Request) (string, bool) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			return "", false
		}
		options, ok := c.CAContentProvider.VerifyOptions()
		if !ok {
			return "", false
		}
		options.Intermediates = x509.NewCertPool()
		for _, between := range r.TLS.PeerCertificates[1:] {
			options.Intermediates.AddCert(between)
		}
		leaf := r.TLS.PeerCertificates[0]
		if _, err := leaf.Verify(options); err != nil {
			return "", false
		}
		allowed := c.AllowedClientNames.Value()
		return leaf.Subject.CommonName, len(allowed) == 0 || slices.Contains(allowed, leaf.Subject.CommonName)
	}
}

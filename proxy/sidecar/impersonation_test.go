package sidecar

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestConnectionMustNotNameImpersonation(t *testing.T) {
	for value, want := range map[string]bool{
		"Impersonate-User":                     true,
		"Upgrade, impersonate-user":            true,
		"close,IMPERSONATE-EXTRA-x":            true,
		"Upgrade":                              false,
		"keep-alive, X-Impersonated":           false,
		"":                                     false,
		"upgrade ,\timpersonate-group , close": true,
	} {
		if got := namesImpersonation(http.Header{"Connection": {"keep-alive", value}}); got != want {
			t.Errorf("%q: %t, want %t", value, got, want)
		}
	}
}

// A member of system:masters who impersonates another user gets only that user's rights.
func TestAddressesAreNotShownWithImpersonation(t *testing.T) {
	shown := forSystemMasters(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for header, want := range map[string]int{"": http.StatusOK, "Impersonate-User": http.StatusForbidden, "impersonate-uid": http.StatusForbidden} {
		r := httptest.NewRequest(http.MethodGet, "/debug/peers", nil)
		r = r.WithContext(apirequest.WithUser(r.Context(), &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}))
		if header != "" {
			r.Header[header] = []string{"low"}
		}
		w := httptest.NewRecorder()
		shown.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("with %q: %d, want %d", header, w.Code, want)
		}
	}
}

package sidecar

import (
	"net/http"
	"testing"
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

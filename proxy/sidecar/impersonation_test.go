package sidecar

import (
	"net/http"
	"testing"
)

func TestConnectionMustNotNameImpersonation(t *testing.T) {
	for value, want := range map[string]bool{
		"Impersonate-Nothing":              true,
		"Upgrade, impersonate-nothing":     true,
		"close,IMPERSONATE-EXTRA-x":        true,
		"Upgrade":                          false,
		"keep-alive, X-Impersonated":       false,
		"":                                 false,
		"upgrade ,\timpersonate-a , close": true,
	} {
		if got := namesImpersonation(http.Header{"Connection": {"keep-alive", value}}); got != want {
			t.Errorf("%q: %t, want %t", value, got, want)
		}
	}
}

package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiscoveryPath(t *testing.T) {
	for path, want := range map[string]*Resource{
		"/apis/batch":                      {Group: "batch"},
		"/apis/batch/":                     {Group: "batch"},
		"/apis/batch/v1":                   {Group: "batch", Version: "v1"},
		"/api/v1":                          {Version: "v1"},
		"/openapi/v3/apis/batch/v1":        {Group: "batch", Version: "v1"},
		"/openapi/v3/api/v1":               {Version: "v1"},
		"/apis":                            nil,
		"/api":                             nil,
		"/apis/batch/v1/jobs":              nil,
		"/apis//v1":                        nil,
		"//apis/batch":                     nil,
		"/openapi/v3":                      nil,
		"/openapi/v2":                      nil,
		"/healthz":                         nil,
		"":                                 nil,
		"/":                                nil,
		"/apis/batch//":                    nil,
		"apis/batch":                       nil,
		"/openapi/v3/openapi/v3/apis/b/v1": nil,
	} {
		got, ok := discoveryPath(path)
		if ok != (want != nil) {
			t.Errorf("%q: %+v, %t", path, got, ok)
		} else if ok {
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", path, diff)
			}
		}
	}
}

func TestResourceString(t *testing.T) {
	for want, r := range map[string]Resource{
		"v1 pods":              pods,
		"batch/v1 jobs/status": status,
		"batch":                {Group: "batch"},
		"batch/v1":             {Group: "batch", Version: "v1"},
		"":                     {},
	} {
		if got := r.String(); got != want {
			t.Errorf("%#v: %q, want %q", r, got, want)
		}
	}
}

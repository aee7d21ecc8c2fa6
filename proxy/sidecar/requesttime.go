package sidecar

import (
	"context"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// limitRequestTime ends requests that take too long, except streams. A client may ask for less time
// with the parameter timeout (k8s.io/apiserver, WithRequestDeadline). A parameter that cannot be
// parsed is ignored here, because the server that serves the request answers 400.
func limitRequestTime(most time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if longRunning(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), requestTime(r, most))
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func requestTime(r *http.Request, most time.Duration) time.Duration {
	if !strings.Contains(r.URL.RawQuery, "timeout") { // parsing is not free
		return most
	}
	if asked, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && asked > 0 {
		return min(asked, most)
	}
	return most
}

// errRequestTime is kube-apiserver's answer when the time is over (k8s.io/apiserver,
// WithTimeoutForNonLongRunningRequests).
var errRequestTime = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)

package sidecar

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// A request waits for the name of its caller only if the name is written to the access log.
func TestNamesAreWaitedForOnlyByTheAccessLog(t *testing.T) {
	for name, log := range map[string]*accessLog{
		"with an access log": {out: discard{io.Discard}, report: func(err error) { t.Error(err) }}, "without one": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &caller{learnt: make(chan struct{})} // the name is being asked for
			handler := &access{log: log, observer: newAccessObserver(), next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				accessedFrom(r.Context()).caller = c
			})}
			ended := false
			go func() {
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, common, nil))
				ended = true
			}()
			synctest.Wait()
			if waits := !ended; waits != (log != nil) {
				t.Errorf("%s: waits %t", name, waits)
			}
			close(c.learnt)
			synctest.Wait()
			if !ended {
				t.Errorf("%s: the request has not ended when the name is known", name)
			}
		})
	}
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

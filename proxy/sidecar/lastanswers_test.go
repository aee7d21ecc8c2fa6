package sidecar

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A handler returns before the end of its answer is sent. A shutdown must wait until it is sent.
func TestShutdownSendsTheLastAnswers(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "front")
	cert := ca.issue(subject{name: "front", dns: []string{"front"}}).tls(t)
	for _, http2 := range []bool{false, true} {
		for range 10 {
			const requests = 20
			var began sync.WaitGroup
			began.Add(requests)
			release := make(chan struct{})
			d := newFrontDoor(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				began.Done()
				<-release
				fmt.Fprint(w, strings.Repeat("x", 10000))
			}), NewOptions().frontLimits(), func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}, nil
			}, slog.New(slog.DiscardHandler))
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = d.serve(listener) }()
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(ca), ServerName: "front"}, ForceAttemptHTTP2: http2}}
			broken := make(chan error, requests)
			for range requests {
				go func() {
					answer, err := client.Get("https://" + listener.Addr().String() + "/api/v1/pods")
					if err == nil {
						_, err = io.Copy(io.Discard, answer.Body)
						answer.Body.Close()
					}
					broken <- err
				}()
			}
			began.Wait()
			stopped := make(chan error, 1)
			go func() { stopped <- d.shutdown(time.Minute) }()
			await(t, "it is stopping", func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				return d.closing
			})
			close(release)
			for range requests {
				if err := <-broken; err != nil {
					t.Errorf("HTTP/2 %t: %v", http2, err)
				}
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
			client.CloseIdleConnections()
		}
	}
}

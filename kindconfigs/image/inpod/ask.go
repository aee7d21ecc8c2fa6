package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// askEvery is the time between two requests, and askTimeout the longest that one may take.
const (
	askEvery   = 100 * time.Millisecond
	askTimeout = 10 * time.Second
)

// answer is a line of the log of "inpod ask".
type answer struct {
	At     time.Time `json:"at"`              // when the request was sent
	Path   string    `json:"path"`            //
	Status int       `json:"status"`          // 0: no answer came
	Lost   bool      `json:"lost,omitempty"`  // the connection was refused, or broke, or the server was silent
	Error  string    `json:"error,omitempty"` // for people
}

// ask requests the paths in turn until ctx ends, and writes an [answer] for each request. It
// alternates between a kept connection, as client-go has, and a new connection. A kept connection
// stays at one server for as long as the server runs, so it never reaches the others. client-go
// repeats a request whose answer has Retry-After. ask writes every other failure, and the next
// request is the retry.
func ask(ctx context.Context, paths []string, out io.Writer) (int, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if err != nil {
		return exitFailed, fmt.Errorf("find the cluster: %w; it is that of the pod, or of $%s", err, clientcmd.RecommendedConfigPathEnvVar)
	}
	config.Timeout, config.QPS = askTimeout, -1 // client-go's own limit is below one request for each askEvery
	kept, err := kubernetes.NewForConfig(config)
	if err != nil {
		return exitFailed, err
	}
	fresh, err := kubernetes.NewForConfig(closing(config))
	if err != nil {
		return exitFailed, err
	}
	return askBy(ctx, []rest.Interface{kept.Discovery().RESTClient(), fresh.Discovery().RESTClient()}, paths, out)
}

// closing is the configuration of a client that closes its connection after each request.
func closing(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"} // with other protocols it would share the connections of config
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Close = true
			return next.RoundTrip(r)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// askBy asks for each path by each client.
func askBy(ctx context.Context, clients []rest.Interface, paths []string, out io.Writer) (int, error) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	lines := json.NewEncoder(out)
	for i := 0; ; i = (i + 1) % (len(paths) * len(clients)) {
		a := answer{At: time.Now(), Path: paths[i/len(clients)]}
		err := clients[i%len(clients)].Get().AbsPath(a.Path).Do(ctx).StatusCode(&a.Status).Error()
		if ctx.Err() != nil {
			return 0, nil
		}
		if err != nil {
			a.Error = err.Error()
			a.Status, a.Lost = failure(err)
		}
		if err := lines.Encode(a); err != nil {
			return exitFailed, err
		}
		select {
		case <-ctx.Done():
			return 0, nil
		case <-tick.C:
		}
	}
}

// failure returns the status of the answer, or 0 and whether the connection was the cause.
func failure(err error) (status int, lost bool) {
	var answered apierrors.APIStatus
	if errors.As(err, &answered) {
		return int(answered.Status().Code), false
	}
	return 0, utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsTimeout(err)
}

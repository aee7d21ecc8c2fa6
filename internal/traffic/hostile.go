package traffic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// ClientForger is the client of requests with headers that only servers may send. What becomes of them can so be told apart.
const ClientForger = "forger"

// hostileShare is how many percent of the requests of [ProfileHostile] bear such headers.
const hostileShare = 33

// forgeries are what hostile clients send: headers by which a peer says that it has passed a request on, and for whom, and absurd ones.
// None may make a difference. Impersonate-User is not among them, since who may use it may; nor X-Forwarded-For, by which audit
// logs, and so the record of a run, tell who has passed a request on.
var forgeries = []http.Header{
	{"X-Kubernetes-Peer-Proxied": {"true"}},
	{"X-Kubernetes-Apiserver-Rerouted": {"true"}},
	{"X-Kubernetes-Peer-Proxied": {"false", "true", "TRUE"}, "X-Skewproof-Refused": {"true"}},
	{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}},
	{"X-Remote-User": {"system:apiserver"}, "X-Remote-Group": {"system:masters", "system:authenticated"}, "X-Remote-Uid": {"0"}},
	{"X-Remote-User": {"system:anonymous"}, "X-Remote-Extra-Scopes": {"everything"}},
	{"X-Remote-User": {""}},
	{"X-Remote-User": {"one", "another"}},
	{"X-Remote-Extra-A%2fb%00": {"%00", strings.Repeat("%", 1000)}},
	{"X-Remote-User": {strings.Repeat("a", 20_000)}},
	{"X-Remote-Group": crowd(300)},
	{
		"X-Kubernetes-Peer-Proxied": {"true"}, "X-Kubernetes-Apiserver-Rerouted": {"true"},
		"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "X-Skewproof-Refused": {"true"},
	},
	{"Via": {"1.1 a, 1.1 b, 1.1 c"}, "Max-Forwards": {"0"}, "Warning": {`199 - "nonsense"`}},
}

// crowd are many groups.
func crowd(size int) (groups []string) {
	for i := range size {
		groups = append(groups, fmt.Sprintf("system:masters-%d", i))
	}
	return groups
}

type forgeryKey struct{}

// forged makes the action send one of the forgeries along.
func (a action) forged(random *rand.Rand) action {
	headers, send := forgeries[random.IntN(len(forgeries))], a.send
	a.client = ClientForger
	a.send = func(ctx context.Context, c *client) { send(context.WithValue(ctx, forgeryKey{}, headers), c) }
	return a
}

// forge adds to a request what its context says.
func forge(r *http.Request) {
	headers, _ := r.Context().Value(forgeryKey{}).(http.Header)
	for name, values := range headers {
		r.Header[name] = append(r.Header[name], values...)
	}
}

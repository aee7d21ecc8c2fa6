package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/skewproof/skewproof/proxy"
)

// AccessRecord is one line of the access log (--access-log). It says what the sidecar did with one
// request. The sidecar writes it as JSON, in one write, when the request has ended. A sidecar that
// is killed loses the records of requests in flight. The JSON names are stable. A record has no
// query and no body, and no header except Client, and therefore no token.
//
// The audit ID is the client's. If the client sent none, the sidecar makes a new one. The sidecar
// passes the audit ID on, so a record can be joined with the audit log of the server that served
// the request. This is the local kube-apiserver if Decision is "local" or "not-found", and the last
// peer of Attempts if Decision is "forward".
type AccessRecord struct {
	AuditID string `json:"auditID"`
	// Server is the identity of the local kube-apiserver.
	Server string    `json:"server"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
	Method string    `json:"method"`
	// Verb is the API verb: get, list, watch, create and so on.
	Verb string `json:"verb,omitempty"`
	// Path is the escaped path of the URL, without the query.
	Path string `json:"path"`
	// User is the name of the caller, empty if the caller could not be authenticated. For a caller
	// with a bearer token, the sidecar learns the name for this record only after the local server
	// has accepted the token. The name is missing if the sidecar could not learn it.
	User string `json:"user,omitempty"`
	// Client is the address of the client. If the caller proved that it is a front proxy, it is the
	// address of the client of that front proxy (the first one in X-Forwarded-For).
	Client string `json:"client,omitempty"`
	// FromPeer is true if the caller proved that it is a front proxy, as the other sidecars are.
	FromPeer bool `json:"fromPeer,omitempty"`
	// Rerouted is true if the request says that a peer sent it. It counts only if FromPeer is true
	// too.
	Rerouted bool `json:"rerouted,omitempty"`
	// Decision is the decision about the request. If package proxy decided, it is "local",
	// "not-found" (the local server's own 404), "forward" or "unavailable". It is "refused" if the
	// sidecar could not authenticate the caller, and empty if there was nothing to decide.
	Decision string `json:"decision,omitempty"`
	// Reason is a proxy.Reason.
	Reason string `json:"reason,omitempty"`
	// Peer is the peer whose answer was passed on, empty if there is none.
	Peer string `json:"peer,omitempty"`
	// Attempts are the attempts at peers, in their order.
	Attempts []AccessAttempt `json:"attempts,omitempty"`
	// Status is the HTTP status; 0 if the connection ended before one was sent. 101 is an upgraded
	// connection.
	Status int `json:"status"`
}

// loggedAddress returns the address of the client as a kube-apiserver would log it. It believes
// only a front proxy about the client of that front proxy.
func loggedAddress(r *http.Request, isProxy bool) string {
	if isProxy {
		if all := utilnet.SourceIPs(r); len(all) > 0 {
			return all[0].String()
		}
	}
	return clientAddress(r)
}

// AccessAttempt is one attempt at a peer.
type AccessAttempt struct {
	Peer string `json:"peer"`
	// Outcome is "answered", "not-delivered", "undecided", "refused", or "unauthorized" if the peer
	// did not accept this server's credentials.
	Outcome string `json:"outcome"`
}

// accessLog writes one record a line. A nil log writes nothing. It is safe for concurrent use.
type accessLog struct {
	mu     sync.Mutex
	out    io.WriteCloser
	failed bool
	report func(error) // called for the first failed write only
}

// openAccessLog opens a file for appending. Only the owner can read the file, because it has user
// names and paths.
func openAccessLog(path string, report func(error)) (*accessLog, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the access log: %w", err)
	}
	return &accessLog{out: f, report: report}, nil
}

func (l *accessLog) write(r *AccessRecord) {
	if l == nil {
		return
	}
	line, err := json.Marshal(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.out.Write(append(line, '\n'))
	}
	if err != nil && !l.failed {
		l.failed = true
		l.report(fmt.Errorf("write the access log: %w", err))
	}
}

func (l *accessLog) close() error {
	if l == nil {
		return nil
	}
	return l.out.Close()
}

// accessObserver is a [proxy.Observer] that completes access records with decisions and attempts,
// and counts the requests at each peer, streams included.
type accessObserver struct {
	mu sync.Mutex
	at map[proxy.ServerID]int
}

func newAccessObserver() *accessObserver { return &accessObserver{at: map[proxy.ServerID]int{}} }

func (o *accessObserver) Decided(ctx context.Context, r proxy.Request, d proxy.Decision, _ int) {
	request := accessedFrom(ctx)
	request.Rerouted = r.Rerouted
	request.Decision, request.Reason = d.Action.String(), string(d.Reason)
	o.leave(request)
	if d.Action == proxy.Forward {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.at[d.Peer]++
		request.at = d.Peer
	}
}

func (o *accessObserver) Attempted(ctx context.Context, _ proxy.Request, a proxy.AttemptResult) {
	request := accessedFrom(ctx)
	attempt := AccessAttempt{Peer: string(a.Peer.Identity()), Outcome: a.Outcome.String()}
	if a.Answered {
		attempt.Outcome = "answered"
		request.Peer = attempt.Peer
	}
	if a.Unauthorized {
		attempt.Outcome = "unauthorized"
	}
	request.Attempts = append(request.Attempts, attempt)
}

func (o *accessObserver) Ejected(context.Context, proxy.ServerID) {}

func (o *accessObserver) Discovered(context.Context, proxy.DiscoverySource) {}

// leave ends the count of a request at a peer.
func (o *accessObserver) leave(request *accessed) {
	if request.at == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at[request.at]--; o.at[request.at] == 0 {
		delete(o.at, request.at)
	}
	request.at = ""
}

// inFlight returns the number of requests that are at a peer now.
func (o *accessObserver) inFlight(peer proxy.ServerID) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at[peer]
}

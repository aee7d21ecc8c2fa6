package sidecar

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// AccessRecord is one line of the access log (--access-log): what this sidecar did with one request. It is written as JSON, in one write,
// when the request has ended; a sidecar that is killed loses the records of requests in flight. The JSON names are stable. A record has
// no header, query or body, and so no token.
//
// The audit ID is the client's, or made here if the client sent none, and is passed on to the server that serves the request. So the record
// can be joined with that server's audit log: requests with Decision "local" or "not-found" were passed to the kube-apiserver behind this
// sidecar, requests with "forward" to the sidecar of the last of Attempts.
type AccessRecord struct {
	AuditID string `json:"auditID"`
	// Server is the identity of the kube-apiserver that this sidecar stands in front of.
	Server string    `json:"server"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
	Method string    `json:"method"`
	// Verb is the API verb: get, list, watch, create and so on.
	Verb string `json:"verb,omitempty"`
	// Path is the escaped path of the URL, without the query.
	Path string `json:"path"`
	// User is the name of the caller, empty if it could not be authenticated.
	User string `json:"user,omitempty"`
	// FromPeer is true if the caller proved to be a front proxy, as the other sidecars are.
	FromPeer bool `json:"fromPeer,omitempty"`
	// Rerouted is true if a peer had sent the request on: it counts only with FromPeer.
	Rerouted bool `json:"rerouted,omitempty"`
	// Decision is what became of the request: "local", "not-found" (the local server's own 404), "forward" or "unavailable" as package
	// proxy decided, "refused" if its sender could not be authenticated, and empty if package proxy had nothing to decide.
	Decision string `json:"decision,omitempty"`
	// Reason is a proxy.Reason.
	Reason string `json:"reason,omitempty"`
	// Peer is the peer whose answer was passed on, empty if there is none.
	Peer string `json:"peer,omitempty"`
	// Attempts are the attempts at peers, in their order.
	Attempts []AccessAttempt `json:"attempts,omitempty"`
	// Status is the HTTP status; 0 if the connection ended before one was sent. 101 is an upgraded connection.
	Status int `json:"status"`
}

// AccessAttempt is one attempt at a peer.
type AccessAttempt struct {
	Peer string `json:"peer"`
	// Outcome is "answered", "not-delivered", "undecided" or "refused".
	Outcome string `json:"outcome"`
}

// accessLog writes records, one a line. The nil log writes nothing. It is safe for concurrent use.
type accessLog struct {
	mu     sync.Mutex
	out    io.WriteCloser
	failed bool
	report func(error) // told once of what could not be written
}

// openAccessLog opens a file to append to, which only its owner can read, because it has user names and paths.
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

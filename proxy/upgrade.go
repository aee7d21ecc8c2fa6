package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// requestedProtocol is the protocol, or the list of protocols, that a client wants to switch to (RFC 9110, 7.8), "" if it does not. HTTP/2
// has no such way (RFC 9113, 8.6): there the headers mean nothing and are not passed on.
//
// Another HTTP is not asked for, as a server may choose to ignore it: over a connection that this server has authenticated to the peer,
// the client could then write any identity headers it likes.
func requestedProtocol(r *http.Request) string {
	if r.ProtoMajor >= 2 || !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") {
		return ""
	}
	var wanted []string
	for _, line := range r.Header["Upgrade"] {
		for protocol := range strings.SplitSeq(line, ",") {
			protocol = strings.TrimSpace(protocol)
			switch name, _, _ := strings.Cut(protocol, "/"); strings.ToLower(name) {
			case "", "h2c", "h2", "http", "tls":
			default:
				wanted = append(wanted, protocol)
			}
		}
	}
	return strings.Join(wanted, ", ")
}

// switchesTo reports whether an answer switches to one of the protocols that were asked for.
func switchesTo(answer *http.Response, wanted string) bool {
	if wanted == "" || !httpguts.HeaderValuesContainsToken(answer.Header["Connection"], "upgrade") {
		return false
	}
	got := answer.Header.Get("Upgrade")
	for protocol := range strings.SplitSeq(wanted, ", ") {
		if strings.EqualFold(protocol, got) {
			return true
		}
	}
	return false
}

// tunnel connects the client with a peer that has switched to the protocol that the client wanted, until both have said
// all, one breaks off, or the request's context ends.
func (f *forwarding) tunnel(answer *http.Response) {
	if !switchesTo(answer, f.protocol) {
		f.fail(apierrors.NewServiceUnavailable("a peer that serves this switched to a protocol that was not asked for"))
		return
	}
	peer, ok := answer.Body.(io.ReadWriteCloser)
	if !ok {
		f.fail(apierrors.NewInternalError(fmt.Errorf("the transport for upgrades gave a %T, which cannot be written to", answer.Body)))
		return
	}
	client, buffered, err := http.NewResponseController(f.w).Hijack()
	if err != nil {
		f.fail(apierrors.NewInternalError(fmt.Errorf("take over the client's connection: %w", err)))
		return
	}
	header := maps.Clone(f.w.Header())
	for name, values := range answer.Header { // in any order
		if !isHopHeader(name) {
			header[name] = values
		}
	}
	switched := http.Response{StatusCode: answer.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: header}
	if err := errors.Join(switched.Write(buffered), buffered.Flush()); err != nil {
		client.Close()
		return
	}

	// The server's reader has what the client sent too early. Beyond that it must not be used: at the end of the client's half it
	// would end the request's context, and with it the other half (net/http, connReader).
	f.h.splice(f.r.Context(), client, peer, io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered())))
}

// splice carries bytes both ways, in two goroutines: see Config.Splice.
func splice(ctx context.Context, client, peer io.ReadWriteCloser, early io.Reader) {
	const directions = 2
	ended := make(chan error, directions)
	go func() { ended <- copyThenCloseWrite(peer, io.MultiReader(early, client)) }()
	go func() { ended <- copyThenCloseWrite(client, peer) }()
	var err error
	open := directions
	for open > 0 {
		select {
		case err = <-ended:
			open--
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			break
		}
	}
	client.Close()
	peer.Close()
	for ; open > 0; open-- {
		<-ended
	}
}

// copyThenCloseWrite copies until the end, and says it to the other side. Where a connection cannot be closed for one direction only,
// that is an error: nothing but its whole end would tell.
func copyThenCloseWrite(to io.Writer, from io.Reader) error {
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	half, ok := to.(interface{ CloseWrite() error })
	if !ok {
		return http.ErrNotSupported
	}
	return half.CloseWrite()
}

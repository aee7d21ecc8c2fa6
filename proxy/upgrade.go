package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// requestedProtocol is the protocol, or list of protocols, to which a client wants to switch (RFC
// 9110, 7.8); "" if there is none. HTTP/2 has no upgrade (RFC 9113, 8.6).
//
// Another version of HTTP is removed from the list. Otherwise the client could write any identity
// headers on a connection to a peer, and the peer would trust them as this server's headers.
func requestedProtocol(r *http.Request) string {
	if r.ProtoMajor >= 2 || !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") {
		return ""
	}
	var wanted []string
	for protocol := range wire.Tokens(r.Header["Upgrade"]) {
		switch name, _, _ := strings.Cut(protocol, "/"); strings.ToLower(name) {
		case "", "h2c", "h2", "http", "tls":
		default:
			wanted = append(wanted, protocol)
		}
	}
	return strings.Join(wanted, ", ")
}

// switchesTo reports whether an answer switches to one of the wanted protocols.
func switchesTo(answer *http.Response, wanted string) bool {
	if wanted == "" || !httpguts.HeaderValuesContainsToken(answer.Header["Connection"], "upgrade") {
		return false
	}
	got := answer.Header.Get("Upgrade")
	return slices.ContainsFunc(strings.Split(wanted, ", "), func(protocol string) bool { return strings.EqualFold(protocol, got) })
}

// tunnel connects the client with a peer that has switched protocols. It ends when both sides have
// ended, one side fails or the request's context ends.
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

	// buffered holds the bytes that the client sent early. Do not read beyond them. With a longer
	// read, the end of the client's half would end the request's context, and so end the other half
	// too (net/http, connReader).
	f.h.config.Splice(f.r.Context(), client, peer, io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered())))
}

// splice copies both ways in two goroutines; see Config.Splice.
func splice(ctx context.Context, client, peer io.ReadWriteCloser, early io.Reader) {
	closeBoth := sync.OnceFunc(func() {
		client.Close()
		peer.Close()
	})
	defer closeBoth()
	defer context.AfterFunc(ctx, closeBoth)()
	var both sync.WaitGroup
	carry := func(to io.Writer, from io.Reader) {
		if copyThenCloseWrite(to, from) != nil {
			closeBoth()
		}
	}
	both.Go(func() { carry(peer, io.MultiReader(early, client)) })
	both.Go(func() { carry(client, peer) })
	both.Wait()
}

// copyThenCloseWrite copies until the end, and then passes the end on. It returns an error for a
// connection that cannot close one direction alone. Then the whole connection must be closed to
// tell the other side.
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

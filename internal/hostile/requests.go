package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/skewproof/skewproof/internal/workload"
)

// anonymous sends many requests without credentials on one HTTP/2 connection.
func anonymous(ctx context.Context, t *Target, i int) error {
	return asking(ctx, t, "", func(s *session, n int) error {
		_, err := s.ask("GET", t.resource(i+n), true)
		return err
	})
}

// asNobody is the end of a request's first line and the start of its headers, without credentials.
const asNobody = " HTTP/1.1\r\nHost: kubernetes.default.svc\r\n"

// as is like asNobody, with a bearer token.
func (t *Target) as(i int) string { return asNobody + "Authorization: Bearer " + t.token(i) + "\r\n" }

// oddTargets sends requests whose targets are not paths.
func oddTargets(ctx context.Context, t *Target, i int) error {
	target := []string{
		"CONNECT kubernetes.default.svc:443", "CONNECT " + t.Address, "OPTIONS *",
		"GET x:https://kubernetes.default.svc" + t.resource(i), "GET http://192.0.2.1" + t.resource(i),
		"GET //" + strings.Repeat("../", 200) + "api", "GET " + t.resource(i) + "/%2e%2e/%2e%2e",
		"GET " + t.resource(i) + "?" + strings.Repeat("timeout=x&", 200),
	}[i%8]
	return t.exchange(ctx, func(conn net.Conn) error {
		_, err := fmt.Fprintf(conn, "%s%sConnection: close\r\n\r\n", target, t.as(i))
		return err
	})
}

// forging sends headers that only servers may send, in several spellings.
func forging(ctx context.Context, t *Target, i int) error {
	return t.exchange(ctx, func(conn net.Conn) error {
		var b strings.Builder
		fmt.Fprintf(&b, "POST %s%sTransfer-Encoding: chunked\r\n", t.resource(i), asNobody)
		b.WriteString("Connection: close\r\n")
		for n, f := range workload.Forgeries {
			for name, values := range f.Header {
				if n%2 == 1 {
					name = strings.ToLower(name)
				}
				for _, value := range values {
					if len(value) < 1<<10 && !strings.ContainsAny(value, "\r\n") {
						fmt.Fprintf(&b, "%s: %s\r\n", name, value)
					}
				}
			}
		}
		b.WriteString("\r\n0\r\n\r\n")
		_, err := io.WriteString(conn, b.String())
		return err
	})
}

// largeHeaders sends headers just below the size limit, or above it.
func largeHeaders(ctx context.Context, t *Target, i int) error {
	return t.exchange(ctx, func(conn net.Conn) error {
		if _, err := fmt.Fprintf(conn, "GET %s%sConnection: close\r\n", t.resource(i), asNobody); err != nil {
			return err
		}
		for n := range 100 + 400*(i%2) { // 0.8 or 4 MB
			if _, err := fmt.Fprintf(conn, "X-Large-%d: %s\r\n", n, strings.Repeat("x", 8000)); err != nil {
				return err
			}
		}
		_, err := io.WriteString(conn, "\r\n")
		return err
	})
}

// watching opens more watches at a time than a connection may have streams, and then leaves.
func watching(ctx context.Context, t *Target, i int) error {
	s, err := t.open(ctx, t.token(i), false)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for n := range 300 {
		if _, err := s.ask("GET", t.resource(n)+"?watch=true&timeoutSeconds=3600", true); err != nil {
			return nil
		}
	}
	rest(ctx, restOfAnswers)
	return nil
}

// upgrading asks for an upgrade, and then sends other data.
func upgrading(ctx context.Context, t *Target, i int) error {
	protocol := []string{"websocket", "SPDY/3.1", "h2c", "TLS/1.2"}[i%4]
	return t.exchange(ctx, func(conn net.Conn) error {
		_, err := fmt.Fprintf(conn, "GET %s/exec?command=true&stdout=true%sConnection: Upgrade\r\nUpgrade: %s\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n%s",
			t.Pod, t.as(i), protocol, strings.Repeat("GET / HTTP/1.1\r\nX-Remote-User: system:admin\r\n\r\n", 20))
		return err
	})
}

// idling connects and sends nothing, or data that is not HTTP.
func idling(ctx context.Context, t *Target, i int) error {
	if i%2 == 0 {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.Address) // no handshake
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		<-ctx.Done()
		return nil
	}
	return t.exchange(ctx, func(conn net.Conn) error {
		_, err := io.WriteString(conn, strings.Repeat("\x00\xff"+http.MethodGet, 1000))
		return err
	})
}

package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestLongRunningRequests(t *testing.T) {
	for _, c := range []struct {
		verb, subresource    string
		long, throughBackend bool
	}{
		{"get", "", false, false}, {"list", "", false, false}, {"create", "", false, false},
		{"watch", "", true, false}, {"watchlist", "", false, false}, {"proxy", "", true, true},
		{"get", "log", true, false}, {"get", "logs", false, false}, {"create", "exec", true, false}, {"create", "attach", true, false},
		{"create", "portforward", true, false}, {"get", "proxy", true, true}, {"get", "status", false, false}, {"create", "eviction", false, false},
	} {
		info := &apirequest.RequestInfo{Verb: c.verb, Subresource: c.subresource}
		if got := LongRunning(info); got != c.long {
			t.Errorf("%s %q is long-running: %t, want %t", c.verb, c.subresource, got, c.long)
		}
		if got := ThroughProxy(info); got != c.throughBackend {
			t.Errorf("%s %q goes to a backend: %t, want %t", c.verb, c.subresource, got, c.throughBackend)
		}
	}
}

// A body is read first, unless there is a reason against it. Each of the reasons alone is enough.
func TestBodiesAreReadFirst(t *testing.T) {
	for _, c := range []struct {
		name      string
		u         user.DefaultInfo
		anonymous bool
	}{
		{"a user", user.DefaultInfo{Name: "alice", Groups: []string{user.AllAuthenticated}}, false},
		{"no groups", user.DefaultInfo{Name: "alice"}, false},
		{"the name", user.DefaultInfo{Name: "system:anonymous"}, true},
		{"the name, and another group", user.DefaultInfo{Name: "system:anonymous", Groups: []string{"g"}}, true},
		{"the group", user.DefaultInfo{Name: "alice", Groups: []string{"g", "system:unauthenticated"}}, true},
		{"a name that begins like it", user.DefaultInfo{Name: "system:anonymous2"}, false},
		{"a name that ends like it", user.DefaultInfo{Name: "x-system:anonymous"}, false},
		{"a name in capitals", user.DefaultInfo{Name: "System:Anonymous"}, false},
		{"a group that begins like it", user.DefaultInfo{Name: "alice", Groups: []string{"system:unauthenticated2"}}, false},
		{"a group in capitals", user.DefaultInfo{Name: "alice", Groups: []string{"SYSTEM:unauthenticated"}}, false},
	} {
		if got := Anonymous(&c.u); got != c.anonymous {
			t.Errorf("%s: anonymous %t, want %t", c.name, got, c.anonymous)
		}
		for _, expects := range []struct {
			values []string
			waits  bool
		}{{nil, false}, {[]string{"100-continue"}, true}, {[]string{"x, 100-Continue"}, true}, {[]string{"100-continued"}, false}, {[]string{"200-ok"}, false}} {
			for _, stream := range []bool{false, true} {
				r := &http.Request{Header: http.Header{"Expect": expects.values}}
				if got, want := ReadFirst(r, c.anonymous, stream), !c.anonymous && !expects.waits && !stream; got != want {
					t.Errorf("%s, Expect %q, stream %t: read first %t, want %t", c.name, expects.values, stream, got, want)
				}
			}
		}
	}
}

// A protocol is a bearer protocol only if it begins like one. A protocol with this text elsewhere
// stays.
func TestBearerProtocolsAreDropped(t *testing.T) {
	const name = "Sec-Websocket-Protocol"
	for _, c := range []struct{ given, want []string }{
		{nil, nil},
		{[]string{"v4.channel.k8s.io"}, []string{"v4.channel.k8s.io"}},
		{[]string{"a,  b", "c"}, []string{"a,  b", "c"}}, // unchanged
		{[]string{BearerProtocol + "dG9rZW4"}, nil},
		{[]string{BearerProtocol}, nil},
		{[]string{"a, " + BearerProtocol + "dG9rZW4, b", "c"}, []string{"a, b, c"}},
		{[]string{"a", BearerProtocol + "x", BearerProtocol + "y"}, []string{"a"}},
		{[]string{"x" + BearerProtocol + "y, b"}, []string{"x" + BearerProtocol + "y, b"}},
		{[]string{strings.TrimSuffix(BearerProtocol, ".") + ", b"}, []string{strings.TrimSuffix(BearerProtocol, ".") + ", b"}},
	} {
		h := http.Header{"A": {"1"}}
		if c.given != nil {
			h[name] = slices.Clone(c.given)
		}
		DropTokenProtocols(h)
		if diff := cmp.Diff(c.want, h[name]); diff != "" || h["A"] == nil {
			t.Errorf("%q (-want +got):\n%s", c.given, diff)
		}
		if _, ok := h[name]; ok && c.want == nil {
			t.Errorf("%q: an empty header remains", c.given)
		}
	}
}

func TestTokensOfLists(t *testing.T) {
	if got, want := slices.Collect(Tokens([]string{" a ,, b", "", ",", "c"})), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for token := range Tokens([]string{"a, b", "c"}) { // Tokens stops when its reader stops
		if token != "a" {
			t.Errorf("%q after the end", token)
		}
		break
	}
}

func TestErrorsOfTheOtherSide(t *testing.T) {
	for _, c := range []struct {
		err   error
		alert bool
	}{
		{nil, false}, {io.EOF, false}, {&net.OpError{Op: "read", Err: io.EOF}, false}, {&net.OpError{Op: "local error", Err: io.EOF}, false},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, true}, {fmt.Errorf("send: %w", &net.OpError{Op: "remote error", Err: io.EOF}), true},
		{errors.New("remote error"), false},
	} {
		if got := SentAlert(c.err); got != c.alert {
			t.Errorf("%v: an alert %t, want %t", c.err, got, c.alert)
		}
	}
	if Is[*net.OpError](io.EOF) || !Is[*net.OpError](fmt.Errorf("send: %w", &net.OpError{Op: "read", Err: io.EOF})) {
		t.Error("errors are distinguished by their type, wrapped or not")
	}
}

// A request of exactly the limit is sent. A request that is one byte larger is not sent, whatever
// part of the request has the byte.
func TestHeadersUpToTheLimit(t *testing.T) {
	target := &url.URL{Path: "/x"}
	fixed := addedHeaders + len("/x")
	for _, c := range []struct {
		name   string
		header func(n int) http.Header // makes headers that count n bytes
	}{
		{"one value", func(n int) http.Header {
			return http.Header{"Name": {strings.Repeat("v", n-headerOverhead-len("Name"))}}
		}},
		{"two values", func(n int) http.Header {
			return http.Header{"Name": {"", strings.Repeat("v", n-2*(headerOverhead+len("Name")))}}
		}},
		{"a long name", func(n int) http.Header { return http.Header{strings.Repeat("N", n-headerOverhead): {""}} }},
		{"cookies", func(n int) http.Header {
			return http.Header{"Cookie": {strings.Repeat("c", n-headerOverhead-len("Cookie")-2-2*(headerOverhead+len("Cookie"))) + ";;"}}
		}},
		{"semicolons in no cookie", func(n int) http.Header {
			return http.Header{"Name": {strings.Repeat("c", n-headerOverhead-len("Name")-2) + ";;"}}
		}},
	} {
		if err := CheckHeaderSize(target, c.header(maxHeaderList-fixed)); err != nil {
			t.Errorf("%s, as large as the limit: %v", c.name, err)
		}
		if err := CheckHeaderSize(target, c.header(maxHeaderList-fixed+1)); err == nil {
			t.Errorf("%s, one byte larger: no error", c.name)
		}
		if err := CheckHeaderSize(&url.URL{Path: "/xy"}, c.header(maxHeaderList-fixed)); err == nil {
			t.Errorf("%s, and a longer target: no error", c.name)
		}
	}
}

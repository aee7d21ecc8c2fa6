package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// difference is the answer of the front door, what it passes on to the server, and the reason. An
// empty front means the same answer.
type difference struct{ front, passes, why string }

// anything means that what is passed on depends on a race.
const anything = "anything"

const (
	configMaps  = "/api/v1/namespaces/default/configmaps"
	hostLine    = "Host: x\r\nAudit-Id: ID\r\nConnection: close\r\n"
	aMap        = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-"}}`
	postHeaders = "Host: x\r\nAudit-Id: ID\r\nConnection: close\r\nContent-Type: application/json\r\n"
)

func ask(target string) string { return "GET " + target + " HTTP/1.1\r\n" + hostLine + "\r\n" }

func askWith(headers string) string {
	return "GET " + configMaps + " HTTP/1.1\r\n" + hostLine + headers + "\r\n"
}

func write(headers, body string) string {
	return "POST " + configMaps + "?dryRun=All HTTP/1.1\r\n" + postHeaders + headers + "\r\n" + body
}

// fields are the fields of a GET by HTTP/2. Some are replaced or added. A field with the value "-"
// is removed.
func fields(changes ...string) []string {
	all := []string{":method", "GET", ":scheme", "https", ":authority", "x", ":path", configMaps, "audit-id", "ID"}
	for i := 0; i < len(changes); i += 2 {
		replaced := false
		for j := 0; j < len(all) && !replaced; j += 2 {
			if replaced = all[j] == changes[i]; replaced && changes[i+1] == "-" {
				all = append(all[:j], all[j+2:]...)
			} else if replaced {
				all[j+1] = changes[i+1]
			}
		}
		if !replaced {
			all = append(all, changes[i:i+2]...)
		}
	}
	return all
}

var chunked = fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(aMap), aMap)

// hostileRequests are sent to a kube-apiserver and to the reference in front of it.
var hostileRequests = []rawRequest{
	{name: "nothing special", text: ask(configMaps)},
	{name: "nothing special, anonymous", text: ask(configMaps), by: "nobody"},
	{name: "nothing special, HTTP/2", fields: fields()},

	{name: "a body after 100", text: write("Expect: 100-continue\r\nContent-Length: "+fmt.Sprint(len(aMap))+"\r\n", ""), then: aMap},
	{name: "a body after 100, without rights", text: write("Expect: 100-continue\r\nContent-Length: "+fmt.Sprint(len(aMap))+"\r\n", ""), then: aMap, by: "nobody"},
	{name: "another expectation", text: write("Expect: 200-ok\r\nContent-Length: "+fmt.Sprint(len(aMap))+"\r\n", aMap)},
	{name: "trailers", text: write("Transfer-Encoding: chunked\r\nTrailer: X-Remote-User\r\n", chunked+"X-Remote-User: root\r\n\r\n")},
	{name: "a trailer that was not announced", text: write("Transfer-Encoding: chunked\r\n", chunked+"X-Remote-User: root\r\n\r\n")},
	{name: "a forbidden trailer", text: write("Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n", chunked+"Content-Length: 3\r\n\r\n")},
	{name: "trailers, HTTP/2", fields: fields(":method", "POST", ":path", configMaps+"?dryRun=All", "content-type", "application/json", "trailer", "x-remote-user"), data: aMap, trailer: []string{"x-remote-user", "root"}},
	{name: "a pseudo-header as a trailer, HTTP/2", fields: fields(":method", "POST", ":path", configMaps+"?dryRun=All", "content-type", "application/json"), data: aMap, trailer: []string{":path", "/"},
		differs: &difference{passes: anything, why: "the stream ends while it is passed on, or before"}},

	{name: "a tunnel to a host", text: "CONNECT example.com:443 HTTP/1.1\r\n" + hostLine + "\r\n"},
	{name: "a tunnel to a path", text: "CONNECT " + configMaps + " HTTP/1.1\r\n" + hostLine + "\r\n",
		differs: &difference{front: "404 text/plain 404 page not found", passes: "connect / by admin: 404; ", why: "HTTP/2 has no path in a CONNECT (RFC 9113, 8.5); neither is answered by anything but an error"}},
	{name: "a tunnel to a host, HTTP/2", fields: fields(":method", "CONNECT", ":scheme", "-", ":path", "-", ":authority", "example.com:443")},
	{name: "another host, absolute", text: ask("https://evil.test" + configMaps)},
	{name: "a user in the target", text: ask("https://root@evil.test" + configMaps)},
	{name: "another scheme", text: ask("ftp://evil.test" + configMaps)},
	{name: "an opaque target", text: ask("x:https://host" + configMaps),
		differs: &difference{front: "400 application/json BadRequest", passes: "", why: "it has no path by which to decide who serves it"}},
	{name: "an opaque target without slashes", text: ask("mailto:a@example.com"),
		differs: &difference{front: "400 application/json BadRequest", passes: "", why: "it has no path by which to decide who serves it"}},
	{name: "a target without a slash", text: ask("api/v1")},
	{name: "an asterisk", text: "OPTIONS * HTTP/1.1\r\n" + hostLine + "\r\n"},
	{name: "an asterisk by GET", text: ask("*")},

	{name: "two slashes first", text: ask("/" + configMaps)},
	{name: "two slashes within", text: ask("/api//v1/namespaces")},
	{name: "a slash at the end", text: ask(configMaps + "/")},
	{name: "an encoded slash", text: ask("/api/v1/namespaces%2Fdefault/configmaps")},
	{name: "an encoded slash in a name", text: ask(configMaps + "/a%2Fb")},
	{name: "an encoded slash first", text: ask("/%2Fapi/v1/namespaces")},
	{name: "a semicolon", text: ask("/api/v1/namespaces;x=y")},
	{name: "a semicolon in a name", text: ask("/api/v1/namespaces/default;a/configmaps")},
	{name: "a semicolon in the query", text: ask(configMaps + "?limit=1;watch=true")},
	{name: "dots", text: ask("/api/v1/../v1/namespaces")},
	{name: "encoded dots", text: ask("/api/v1/%2e%2e/v1/namespaces")},
	{name: "a letter encoded", text: ask("/api/v1/namespaces/default/%63onfigmaps")},
	{name: "no UTF-8", text: ask(configMaps + "/%ff")},
	{name: "a zero byte", text: ask(configMaps + "/%00")},
	{name: "half an encoding", text: ask(configMaps + "/%z")},
	{name: "a backslash", text: ask(`/api\v1\namespaces`)},
	{name: "a fragment", text: ask(configMaps + "#x")},
	{name: "a path of 100 KB", text: ask(configMaps + "/" + strings.Repeat("x", 100<<10))},
	{name: "a path of 2 MB", text: ask(configMaps + "/" + strings.Repeat("x", 2<<20))},
	{name: "a query of 100 KB", text: ask(configMaps + "?limit=1&x=" + strings.Repeat("x", 100<<10))},

	{name: "two hosts", text: "GET " + configMaps + " HTTP/1.1\r\nHost: x\r\nHost: y\r\nAudit-Id: ID\r\nConnection: close\r\n\r\n"},
	{name: "no host", text: "GET " + configMaps + " HTTP/1.1\r\nAudit-Id: ID\r\nConnection: close\r\n\r\n"},
	{name: "an empty host", text: "GET " + configMaps + " HTTP/1.1\r\nHost:\r\nAudit-Id: ID\r\nConnection: close\r\n\r\n"},
	{name: "a host that is none", text: "GET " + configMaps + " HTTP/1.1\r\nHost: a b\r\nAudit-Id: ID\r\nConnection: close\r\n\r\n"},
	{name: "HTTP/1.0", text: "GET " + configMaps + " HTTP/1.0\r\nAudit-Id: ID\r\n\r\n"},
	{name: "HTTP/3.0", text: "GET " + configMaps + " HTTP/3.0\r\n" + hostLine + "\r\n"},

	{name: "two lengths", text: write("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd")},
	{name: "the same length twice", text: write(strings.Repeat("Content-Length: "+fmt.Sprint(len(aMap))+"\r\n", 2), aMap)},
	{name: "a length and chunks", text: write("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", chunked+"\r\n")},
	{name: "chunks and a length", text: write("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", chunked+"\r\n")},
	{name: "an unknown encoding", text: write("Transfer-Encoding: gzip, chunked\r\n", chunked+"\r\n")},
	{name: "chunked twice", text: write("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunked+"\r\n")},
	{name: "a chunk that is none", text: write("Transfer-Encoding: chunked\r\n", "zz\r\n"),
		differs: &difference{front: "400 application/json BadRequest", passes: "create /api/v1/namespaces/default/configmaps?dryRun=All by admin: 500; ", why: "the client is to blame, not a server"}},
	{name: "a negative length", text: write("Content-Length: -1\r\n", "")},

	{name: "a space before the colon", text: askWith("X-Remote-User : root\r\n")},
	{name: "a folded line", text: askWith("X-A: b\r\n X-Remote-User: root\r\n")},
	{name: "a bare CR", text: askWith("X-A: b\rX-Remote-User: root\r\n")},
	{name: "a zero byte in a header", text: askWith("X-A: b\x00c\r\n")},
	{name: "an underscore", text: askWith("X_Remote_User: root\r\n")},
	{name: "headers of identity", text: askWith("X-Remote-User: root\r\nX-Remote-Group: system:masters\r\n")},
	{name: "headers of identity, anonymous", text: askWith("X-Remote-User: root\r\nX-Remote-Group: system:masters\r\n"), by: "nobody"},
	{name: "a header of the hop", text: askWith("X-Kubernetes-Peer-Proxied: true\r\n")},
	{name: "impersonation", text: askWith("Impersonate-User: bob\r\n")},
	{name: "impersonation that takes itself off", text: "GET " + configMaps + " HTTP/1.1\r\nHost: x\r\nAudit-Id: ID\r\nConnection: close, Impersonate-User\r\nImpersonate-User: bob\r\n\r\n",
		differs: &difference{front: "400 application/json BadRequest", why: "a reverse proxy would remove the header, and the request would have the caller's rights"}},
	{name: "a group without a user", text: askWith("Impersonate-Group: system:masters\r\n")},
	{name: "2 MB of headers", text: askWith("X-Big: " + strings.Repeat("x", 2<<20) + "\r\n")},

	{name: "a method of its own", text: "PROPFIND " + configMaps + " HTTP/1.1\r\n" + hostLine + "\r\n"},
	{name: "a method in lower case", text: "get " + configMaps + " HTTP/1.1\r\n" + hostLine + "\r\n"},
	{name: "TRACE", text: "TRACE " + configMaps + " HTTP/1.1\r\n" + hostLine + "\r\n"},
	{name: "a method that is none", text: "( " + configMaps + " HTTP/1.1\r\n" + hostLine + "\r\n"},
	{name: "a method that is none, HTTP/2", fields: fields(":method", "("),
		differs: &difference{front: "400 application/json BadRequest", passes: "", why: "no transport sends it"}},
	{name: "a method that is none, of the built-in paths, HTTP/2", fields: fields(":method", "(", ":path", "/healthz"),
		differs: &difference{front: "400 application/json BadRequest", passes: "", why: "no transport sends it"}},
	{name: "a timeout that is none", text: ask(configMaps + "?timeout=x")},
	{name: "a timeout that is none, anonymous", text: ask(configMaps + "?timeout=x"), by: "nobody"},
	{name: "discovery within a time that is none", text: ask("/apis?timeout=x")},
	{name: "discovery within a time that is none, anonymous", text: ask("/apis?timeout=x"), by: "nobody"},
	{name: "discovery within a time that is none, HTTP/2", fields: fields(":path", "/apis?timeout=x")},
	{name: "a token that the Connection header names", by: "nobody",
		text: "GET " + configMaps + " HTTP/1.1\r\nHost: x\r\nAudit-Id: ID\r\nConnection: close, Authorization\r\nAuthorization: Bearer made-up\r\n\r\n"},
	{name: "a token that is made up, HTTP/2", fields: fields("authorization", "Bearer made-up"), by: "nobody"},
	{name: "a watch without rights", text: ask(configMaps + "?watch=1"), by: "nobody"},
	{name: "an unknown format", text: askWith("Accept: image/png\r\n")},
	{name: "an upgrade to HTTP/2", text: "GET " + configMaps + " HTTP/1.1\r\nHost: x\r\nAudit-Id: ID\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"},
	{name: "an upgrade to nothing", text: "GET " + configMaps + " HTTP/1.1\r\nHost: x\r\nAudit-Id: ID\r\nConnection: Upgrade\r\nUpgrade:\r\n\r\n"},
	{name: "a WebSocket where there is none", text: "GET " + configMaps + " HTTP/1.1\r\nHost: x\r\nAudit-Id: ID\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"},

	{name: "a header in upper case, HTTP/2", fields: fields("X-Remote-User", "root")},
	{name: "Connection, HTTP/2", fields: fields("connection", "close")},
	{name: "Transfer-Encoding, HTTP/2", fields: fields("transfer-encoding", "chunked")},
	{name: "TE, HTTP/2", fields: fields("te", "gzip")},
	{name: "TE trailers, HTTP/2", fields: fields("te", "trailers")},
	{name: "Upgrade, HTTP/2", fields: fields("upgrade", "websocket")},
	{name: "Host beside the authority, HTTP/2", fields: fields("host", "evil.test")},
	{name: "no authority, HTTP/2", fields: fields(":authority", "-")},
	{name: "an authority with a user, HTTP/2", fields: fields(":authority", "root@evil.test")},
	{name: "no path, HTTP/2", fields: fields(":path", "-")},
	{name: "an empty path, HTTP/2", fields: fields(":path", "")},
	{name: "a path without a slash, HTTP/2", fields: fields(":path", "api/v1")},
	{name: "an absolute path, HTTP/2", fields: fields(":path", "https://evil.test"+configMaps),
		differs: &difference{front: "400 application/json BadRequest", passes: "", why: "a handler cannot end a stream with PROTOCOL_ERROR"}},
	{name: "an opaque path, HTTP/2", fields: fields(":path", "x:https://evil.test"+configMaps),
		differs: &difference{front: "400 application/json BadRequest", passes: "", why: "a handler cannot end a stream with PROTOCOL_ERROR"}},
	{name: "another scheme, HTTP/2", fields: fields(":scheme", "ftp")},
	{name: "two paths, HTTP/2", fields: append([]string{":path", "/healthz"}, fields()...)},
	{name: "an unknown pseudo-header, HTTP/2", fields: append([]string{":admin", "true"}, fields()...)},
	{name: "a pseudo-header after others, HTTP/2", fields: append(fields(":path", "-"), ":path", configMaps)},
	{name: "a new line in a value, HTTP/2", fields: fields("x-a", "b\r\nX-Remote-User: root")},
	{name: "a name with a space, HTTP/2", fields: fields("x a", "b")},
	{name: "a wrong length, HTTP/2", fields: fields(":method", "POST", ":path", configMaps+"?dryRun=All", "content-type", "application/json", "content-length", "3"), data: aMap,
		differs: &difference{front: "", passes: "", why: "a short body is read before the server is asked"}},
	{name: "a tunnel of its own protocol, HTTP/2", fields: append([]string{":protocol", "websocket"}, fields(":method", "CONNECT")...)},
}

// compared is the result of a request at one of the two.
type compared struct {
	ID     string
	Answer rawAnswer
}

// answersVariable names the file into which the half inside the sandbox writes the answers.
const answersVariable = "SKEWPROOF_E2E_ANSWERS"

// sendHostileRequests sends each request, inside the sandbox, to the server itself and to the front
// door. It returns both answers to each request.
func sendHostileRequests(t *testing.T) map[string][2]compared {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(insideConfig(t, "a"))
	must(t, err)
	tlsConfig.ServerName = "kubernetes.default.svc"
	if own := tlsConfig.GetClientCertificate; own != nil {
		pair, err := own(nil)
		must(t, err)
		tlsConfig.GetClientCertificate, tlsConfig.Certificates = nil, []tls.Certificate{*pair}
	}
	place := local.Places(scenario.SubjectReference, []history.Server{{Name: "a"}})[0]
	answers := map[string][2]compared{}
	for i, r := range hostileRequests {
		var pair [2]compared
		for side, address := range []string{place.Own.String(), place.Real.String()} {
			pair[side].ID = fmt.Sprintf("hostile-%d-%d", i, side)
			if pair[side].Answer, err = r.send(address, tlsConfig, pair[side].ID); err != nil {
				t.Fatalf("%s: send to %s: %v", r.name, address, err)
			}
		}
		answers[r.name] = pair
	}
	return answers
}

// The reference must answer a request that no honest client sends in the same way as the
// kube-apiserver behind it. That server must receive the same request from the reference as from
// the client. The table gives the reason of every exception.
func TestHostileRequestsAreAnsweredAsByAKubeAPIServer(t *testing.T) {
	if isInside() {
		content, err := json.Marshal(sendHostileRequests(t))
		must(t, err)
		must(t, os.WriteFile(os.Getenv(answersVariable), content, 0o600))
		return
	}
	needsTools(t, "nsenter")
	said := filepath.Join(t.TempDir(), "answers.json")
	t.Setenv(answersVariable, said)
	kept := begin(t, "2 servers ready", "--keep", "--subject", "reference", "--servers", "2", "--qps", "1")
	kept.again(t, 5*time.Minute)
	content, err := os.ReadFile(said)
	must(t, err)
	var answers map[string][2]compared
	must(t, json.Unmarshal(content, &answers))
	kept.end(t, syscall.SIGINT) // afterwards the audit logs are complete
	passed := auditedRequests(t, filepath.Join(kept.dir, "logs", "a-audit.jsonl"))
	agree := 0
	for _, r := range hostileRequests {
		pair, ok := answers[r.name]
		if !ok {
			t.Errorf("%s: no answers", r.name)
			continue
		}
		direct, front := pair[0], pair[1]
		passes := [2]string{passed[direct.ID], passed[front.ID]}
		t.Logf("%-45s %s | %s", r.name, direct.Answer, passes[0])
		want := difference{front: direct.Answer.String(), passes: passes[0]}
		if r.differs != nil {
			if want.passes = r.differs.passes; r.differs.front != "" {
				want.front = r.differs.front
			}
		}
		if got := front.Answer.String(); got != want.front || want.passes != anything && passes[1] != want.passes {
			t.Errorf("%s:\n kube-apiserver %s | %s\n front door     %s | %s", r.name, direct.Answer, passes[0], got, passes[1])
			continue
		}
		if r.differs != nil && want.passes != anything && front.Answer.String() == direct.Answer.String() && passes[0] == passes[1] {
			t.Errorf("%s: there is no difference any more", r.name)
		}
		agree++
	}
	if answers["nothing special"][1].Answer.Code != 200 || passed[answers["nothing special"][1].ID] == "" {
		t.Errorf("the plain request was answered with %s and is in the audit log as %q: this test proves nothing",
			answers["nothing special"][1].Answer, passed[answers["nothing special"][1].ID])
	}
	t.Logf("%d of %d are as the table says", agree, len(hostileRequests))
}

// auditedRequests returns the requests that the server received, by Audit-ID.
func auditedRequests(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	passed := map[string]string{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e auditv1.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || !strings.HasPrefix(string(e.AuditID), "hostile-") || e.Stage != auditv1.StageResponseComplete {
			continue
		}
		uri := e.RequestURI
		if len(uri) > 100 {
			uri = fmt.Sprintf("%s… (%d)", uri[:60], len(uri))
		}
		as := ""
		if e.ImpersonatedUser != nil {
			as = " as " + e.ImpersonatedUser.Username
		}
		code := int32(0)
		if e.ResponseStatus != nil {
			code = e.ResponseStatus.Code
		}
		passed[string(e.AuditID)] += fmt.Sprintf("%s %s by %s%s: %d; ", e.Verb, uri, e.User.Username, as, code)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return passed
}

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/pki"
)

func TestProxyHelpGroupsTheFlags(t *testing.T) {
	out, err := call(t, "proxy", "--help")
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{
		"skewproof proxy", "Serving flags:", "--secure-port", "Local kube-apiserver flags:", "--upstream", "Peers flags:", "--peer-ca-file",
		"Authentication flags:", "--requestheader-allowed-names", "Observation flags:", "--access-log", "Logging flags:", "--log-format",
	} {
		next := strings.Index(out[at:], want)
		if next < 0 {
			t.Fatalf("%q is missing, or not in its place:\n%s", want, out)
		}
		at += next
	}
}

func TestWrongProxyOptionsAreWrongUsage(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"--secure-port=0", "--policy=none"}, []string{"8 options are wrong:\n", "\n  --secure-port 0", "\n  --policy: no policy", "\n  --tls-cert-file is missing"}},
		{[]string{"--log-format=xml"}, []string{`--log-format "xml": want text or json`}},
		{[]string{"--v=8"}, []string{"--v 8: want 0 to 7", "tokens"}},
		{[]string{"--no-such-flag"}, []string{"'skewproof proxy --help' shows the flags"}},
		{[]string{"surplus"}, []string{"usage: skewproof proxy"}},
	} {
		_, err := call(t, append([]string{"proxy"}, test.args...)...)
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitUsage {
			t.Errorf("%v: %v, want exit code %d", test.args, err, exitUsage)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v\nwant %q in it", test.args, err, want)
			}
		}
	}
}

// The test runs the command itself, without a kube-apiserver. The command serves, reports that it
// is not ready, and ends after a signal.
func TestProxyRunsUntilItIsToldToStop(t *testing.T) {
	dir := t.TempDir()
	issue := func(authority, name string, r pki.Request) (*pki.Authority, pki.Pair) {
		a, err := pki.NewAuthority(dir, authority)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := a.Issue(name, r)
		if err != nil {
			t.Fatal(err)
		}
		return a, pair
	}
	ca, serving := issue("ca", "serving", pki.Request{CommonName: "proxy", DNSNames: []string{"kubernetes.default.svc"}, Server: true})
	front, client := issue("front-proxy-ca", "client", pki.Request{CommonName: "front-proxy-client", Client: true})
	port, admin := freePort(t), freePort(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	root := newRoot()
	var logged bytes.Buffer
	root.SetErr(&logged)
	root.SetArgs([]string{
		"proxy", "--bind-address=127.0.0.1", "--secure-port=" + port, "--admin-bind-address=127.0.0.1:" + admin, "--advertise-address=127.0.0.1",
		"--upstream=https://127.0.0.1:1", "--upstream-ca-file=" + ca.CertFile(), "--tls-cert-file=" + serving.Cert, "--tls-private-key-file=" + serving.Key,
		"--proxy-client-cert-file=" + client.Cert, "--proxy-client-key-file=" + client.Key, "--peer-ca-file=" + ca.CertFile(),
		"--requestheader-client-ca-file=" + front.CertFile(), "--peer=apiserver-b=127.0.0.1:2", "--log-format=json",
	})
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	deadline := time.After(30 * time.Second)
	for told := ""; !strings.Contains(told, "[-]local-kube-apiserver failed"); {
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v\n%s", err, &logged)
		case <-deadline:
			t.Fatalf("it did not serve; the last that it told: %s", told)
		case <-time.After(20 * time.Millisecond):
		}
		if response, err := http.Get("http://127.0.0.1:" + admin + "/readyz"); err == nil {
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			told = string(body)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if !strings.Contains(logged.String(), `"msg":"serving"`) {
		t.Errorf("the log is not the JSON that was asked for:\n%s", &logged)
	}
	key, err := os.ReadFile(client.Key)
	if err != nil || bytes.Contains(logged.Bytes(), key) {
		t.Errorf("a key is in the log, or could not be read: %v", err)
	}
}

// freePort is a port on which nothing listens now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

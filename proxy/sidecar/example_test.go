package sidecar_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/proxy/sidecar"
)

// kubeAPIServer is a fake kube-apiserver that serves only pods.
func kubeAPIServer(w http.ResponseWriter, r *http.Request) {
	document := func(items string) {
		w.Header().Set("Content-Type", discovery.AcceptV2)
		fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[%s]}`, items)
	}
	switch {
	case r.URL.Path == "/readyz":
		io.WriteString(w, "ok")
	case r.URL.Path == "/version":
		io.WriteString(w, `{"gitVersion":"v1.37.1"}`)
	case r.URL.Path == "/api":
		document(`{"metadata":{"name":""},"versions":[{"version":"v1","resources":[{"resource":"pods","scope":"Namespaced","verbs":["list"]}]}]}`)
	case r.URL.Path == "/apis":
		document("")
	case r.URL.Path == "/api/v1/pods":
		fmt.Fprintf(w, "pods for %s", r.Header.Get("X-Remote-User"))
	case r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":%q}}}`, r.Header.Get("X-Remote-User"))
	case r.URL.Path == "/apis/authorization.k8s.io/v1/subjectaccessreviews": // asked before a 503 that names the resource
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
	case r.URL.Query().Get("sendInitialEvents") != "":
		http.Error(w, "this server has no streaming lists", http.StatusUnprocessableEntity)
	case r.URL.Path == "/api/v1/namespaces/kube-system/configmaps" && r.URL.Query().Get("watch") == "":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{
			"metadata":{"name":"extension-apiserver-authentication","namespace":"kube-system","resourceVersion":"1"},
			"data":{"requestheader-client-ca-file":"a certificate","requestheader-username-headers":"[\"X-Remote-User\"]",
				"requestheader-group-headers":"[\"X-Remote-Group\"]","requestheader-extra-headers-prefix":"[\"X-Remote-Extra-\"]"}}]}`)
	case r.URL.Query().Get("watch") != "": // of CustomResourceDefinitions and APIServices, which never change here
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	}
}

// A test starts a sidecar in front of a fake server, on a free port, and sends an anonymous
// request.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "sidecar")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	certFile, keyFile, pair := writeCertificate(dir)
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(kubeAPIServer))
	upstream.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	upstream.StartTLS()
	defer upstream.Close()

	options := sidecar.NewOptions()
	options.Upstream, options.UpstreamCAFile = upstream.URL, certFile
	options.ServerID = "apiserver-a"
	options.TLSCertFile, options.TLSPrivateKeyFile = certFile, keyFile
	options.ProxyClientCert, options.ProxyClientKey = certFile, keyFile
	options.PeerCAFile, options.RequestHeaderCAFile = certFile, certFile
	options.Peers = []string{"apiserver-b=127.0.0.1:1"} // with fixed peers, no leases are needed
	options.PeerAdvertiseIP, options.PeerAdvertisePort = "127.0.0.1", "6443"
	options.AdminBindAddress = ""
	if options.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		log.Fatal(err)
	}
	started := make(chan net.Addr, 1)
	options.Started = func(front, _ net.Addr) { started <- front }
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sidecar.Run(ctx, options) }()

	select {
	case front := <-started:
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: upstream.Client().Transport.(*http.Transport).TLSClientConfig}}
		fmt.Println(untilServed(client, "https://"+front.String()+"/api/v1/pods"))
		client.CloseIdleConnections()
	case err := <-ended:
		log.Fatal(err)
	}
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// 200 pods for system:anonymous
	// ended: <nil>
}

// untilServed repeats a request until the answer is not 503. The sidecar must first learn what its
// server serves.
func untilServed(client *http.Client, url string) string {
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for {
		answer, err := client.Get(url)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		if answer.StatusCode != http.StatusServiceUnavailable {
			return fmt.Sprintf("%d %s", answer.StatusCode, body)
		}
		<-every.C
	}
}

// writeCertificate writes one certificate that is authority, serving certificate and front-proxy
// certificate. Peers require the name kubernetes.default.svc in a serving certificate.
func writeCertificate(dir string) (certFile, keyFile string, pair tls.Certificate) {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "front-proxy-client"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"kubernetes.default.svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	check(err)
	certPEM, keyPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	check(os.WriteFile(certFile, certPEM, 0o600))
	check(os.WriteFile(keyFile, keyPEM, 0o600))
	pair, err = tls.X509KeyPair(certPEM, keyPEM)
	check(err)
	return certFile, keyFile, pair
}

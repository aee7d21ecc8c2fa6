// Package extension is an extension apiserver: the program behind an aggregated API. It keeps the
// objects of its resources in memory and, like real ones, trusts the user headers of a front proxy
// with the right certificate.
package extension

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// The Service of the program. The serving certificate must be valid for NAME.NAMESPACE.svc.
const (
	ServiceName      = "extension"
	ServiceNamespace = "default"
)

// API is one resource that the program serves.
type API struct {
	Group    string   `json:"group"`
	Resource string   `json:"resource"`
	Versions []string `json:"versions"`
}

// Config says where and how the program serves. All fields must be set.
type Config struct {
	Address           string // host:port to listen on
	CertFile, KeyFile string // its serving certificate
	// ClientCAFile is the authority of front proxies. AllowedName is the common name of the front
	// proxy that may act for users.
	ClientCAFile, AllowedName string
	// APIs is the file of the APIs to serve, as [WriteAPIs] writes it. It is read for each request.
	APIs string
}

// shutdownPatience is the time that running requests have after ctx has ended.
const shutdownPatience = 3 * time.Second

// Run serves until ctx ends.
func Run(ctx context.Context, c Config) error {
	listener, err := net.Listen("tcp", c.Address)
	if err != nil {
		return fmt.Errorf("listen for kube-apiservers: %w", err)
	}
	return serve(ctx, listener, c)
}

// serve is Run with a listener at the address, which it closes.
func serve(ctx context.Context, listener net.Listener, c Config) error {
	defer func() { _ = listener.Close() }()
	if _, err := readAPIs(c.APIs); err != nil {
		return err
	}
	ca, err := os.ReadFile(c.ClientCAFile)
	if err != nil {
		return fmt.Errorf("read the authority of front proxies: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return fmt.Errorf("read the authority of front proxies: %s has no certificate", c.ClientCAFile)
	}
	server := &http.Server{
		Handler:           newHandler(c.AllowedName, func() ([]API, error) { return readAPIs(c.APIs) }),
		ReadHeaderTimeout: 10 * time.Second,
		// Without a certificate, a client may only ask for /readyz.
		TLSConfig: &tls.Config{ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12},
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownPatience)
		defer cancel()
		stopped <- errors.Join(server.Shutdown(patience), server.Close())
	})
	err = server.ServeTLS(listener, c.CertFile, c.KeyFile)
	if !stop() { // ctx has ended
		<-stopped
		return nil
	}
	return fmt.Errorf("serve kube-apiservers: %w", err)
}

// WriteAPIs writes the APIs to serve atomically.
func WriteAPIs(path string, apis []API) error {
	encoded, err := json.Marshal(apis)
	if err == nil {
		err = os.WriteFile(path+".new", encoded, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("write the extension apiserver's APIs: %w", err)
	}
	return nil
}

func readAPIs(path string) ([]API, error) {
	encoded, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the APIs to serve: %w", err)
	}
	var apis []API
	if err := json.Unmarshal(encoded, &apis); err != nil {
		return nil, fmt.Errorf("read the APIs to serve from %s: %w", path, err)
	}
	return apis, nil
}

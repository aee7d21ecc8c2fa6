package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
)

// goawayChance is the largest --goaway-chance that a kube-apiserver accepts.
const goawayChance = "0.02"

// withGoaways returns flags for a run whose kube-apiservers close HTTP/2 connections at random.
func withGoaways(t *testing.T, versions ...string) (flags []string) {
	t.Helper()
	dir, store := t.TempDir(), binaries.Store{}
	for _, version := range versions {
		real, err := store.Get(t.Context(), binaries.KubeAPIServer, version)
		must(t, err)
		script := filepath.Join(dir, "kube-apiserver-"+version)
		must(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec '%s' \"$@\" --goaway-chance=%s\n", real.Path, goawayChance), 0o700))
		flags = append(flags, "--binary", "kube-apiserver@"+version+"="+script)
	}
	return flags
}

// rotateEvery is the time between two rotations. It is longer than the sidecars need to read new
// files.
const rotateEvery = 90 * time.Second

// rotateCertificates replaces the serving certificates of the sidecars and the front-proxy
// certificate repeatedly until ctx ends. It returns the number of replacements.
func rotateCertificates(ctx context.Context, t *testing.T, sidecars []sidecarProcess) (times int) {
	for tick := time.NewTicker(rotateEvery); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return times
		case <-tick.C:
		}
		for _, s := range sidecars {
			if err := renewCertificate("ca", "serving-"+s.name); err != nil {
				t.Error(err)
			}
		}
		if err := renewCertificate("front-proxy-ca", "front-proxy-client"); err != nil {
			t.Error(err)
		}
		times++
	}
}

// renewCertificate replaces a certificate of the run and its key by a new pair. Only the key and
// the serial number differ.
func renewCertificate(authority, name string) error {
	ca, err := tls.LoadX509KeyPair(insideKeys(authority+".crt"), insideKeys(authority+".key"))
	if err != nil {
		return err
	}
	old, err := tls.LoadX509KeyPair(insideKeys(name+".crt"), insideKeys(name+".key"))
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := *old.Leaf
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100)); err != nil {
		return err
	}
	signed, err := x509.CreateCertificate(rand.Reader, &template, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	// A process that reads between the two writes gets a certificate and a key that do not match.
	// It must read again.
	for _, f := range []struct {
		suffix, kind string
		content      []byte
	}{{".key", "EC PRIVATE KEY", der}, {".crt", "CERTIFICATE", signed}} {
		file := insideKeys(name + f.suffix)
		if err := os.WriteFile(file+".new", pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.content}), 0o600); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	return nil
}

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// Roots are the paths of the discovery documents that [Documents] returns.
var Roots = [2]string{"api", "apis"}

// Documents starts one kube-apiserver of a version in a sandbox, without other servers and without
// the Mixed Version Proxy. It returns the bodies of /api and /apis, in the order of [Roots]. If
// defaults is true, only the APIs that are on by default are on, and otherwise all APIs. own are
// the user's own binaries. If the server does not start, the error names the directory with its
// log.
func Documents(ctx context.Context, version string, defaults bool, own binaries.Overrides, progress io.Writer) (bodies [2][]byte, err error) {
	err = observe(ctx, version, defaults, own, progress, func(j *job) { j.documents = true }, func(dir Dir) error {
		for i, root := range Roots {
			if bodies[i], err = os.ReadFile(dir.document(root)); err != nil {
				return fmt.Errorf("read the recorded document: %w", err)
			}
		}
		return nil
	})
	return bodies, err
}

// observe starts one kube-apiserver in a sandbox, lets the sandboxed half record what set asks for,
// and lets take read it from the directory.
func observe(ctx context.Context, version string, defaults bool, own binaries.Overrides, progress io.Writer, set func(*job), take func(Dir) error) (err error) {
	out, err := os.MkdirTemp("", "skewproof-record-")
	if err != nil {
		return fmt.Errorf("make a directory for the recording: %w", err)
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(out)
		}
	}()
	s := Spec{
		Own: &Own{
			Name: "record", Happens: "One server of one version serves.",
			Plan: scenario.Plan{Bounds: history.DefaultBounds, Servers: []scenario.Server{{Name: scenario.ServerName(0), Version: version}}},
		},
		Subject: scenario.SubjectNone, From: version, To: version, Servers: 1, Binaries: own, Out: out, Keep: true, NoLoad: true,
	}
	if defaults {
		s.RuntimeConfig = new("")
	}
	p, err := s.Plan()
	if err != nil {
		return err
	}
	p.Spec.Keep = false // this cluster is not used afterwards
	if err := p.backend.prepare(ctx, p); err != nil {
		return err
	}
	dir, err := NewDir(out, p.Scenario.Name, p.Spec.Subject, time.Now())
	if err != nil {
		return err
	}
	c := Console{Out: io.Discard, Progress: progress}
	j := &job{Plan: p, Run: p.describe(), Dir: dir, Console: c, status: c.status()}
	set(j)
	var cut error
	if err := p.backend.carryOut(ctx, j, func(why error) { cut = why }); err != nil || cut != nil {
		return errors.Join(err, cut)
	}
	return take(dir)
}

func (d Dir) document(root string) string { return d.File(root + ".json") }

// writeDocuments writes the answers of the first server of a cluster at both roots.
func (d Dir) writeDocuments(ctx context.Context, made *local.Cluster, server string) error {
	config, err := made.Direct(server)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("make a client of server %s: %w", server, err)
	}
	for _, root := range Roots {
		body, err := document(ctx, client, config.Host+"/"+root)
		if err == nil {
			err = os.WriteFile(d.document(root), body, 0o644)
		}
		if err != nil {
			return fmt.Errorf("record what server %s serves at /%s: %w", server, root, err)
		}
	}
	return nil
}

// maxDocument is much larger than any discovery document.
const maxDocument = 64 << 20

func document(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", discovery.AcceptV2+";profile=nopeer")
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxDocument))
}

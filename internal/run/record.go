package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/discovery"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/sim/recorded"
)

// Documents starts one kube-apiserver of a version in a sandbox, without other servers and without
// the Mixed Version Proxy. It returns the bodies of /api and /apis, in the order of
// [recorded.Roots]. If defaults is true, only the APIs that are on by default are on, and otherwise
// all APIs. own are the user's own binaries. If the server does not start, the error names the
// directory with its log.
func Documents(ctx context.Context, version string, defaults bool, own binaries.Overrides, progress io.Writer) (bodies [2][]byte, err error) {
	apis := new("")
	if !defaults {
		apis = nil
	}
	got, err := recording{versions: []string{version}, apis: apis, want: wanted{Documents: true}}.carryOut(ctx, own, progress, recorded.Roots[:]...)
	copy(bodies[:], got)
	return bodies, err
}

// wanted is what the sandboxed half does with the servers before they end.
type wanted struct {
	// Documents says that the discovery documents of the first server are wanted.
	Documents bool `json:"documents,omitempty"`
	// Fields says that the first two servers are compared, also with these feature gates switched.
	Fields bool         `json:"fields,omitempty"`
	Gates  []gates.Flip `json:"gates,omitempty"`
	// Kinds says that the behaviour of the version of the first server is wanted: see [Behaviour].
	Kinds []string `json:"kinds,omitempty"`
}

// recording starts one server of each version, without the Mixed Version Proxy, to learn something
// about the versions.
type recording struct {
	versions []string
	apis     *string // see [Spec]
	want     wanted
}

// carryOut starts the servers in a sandbox, and returns what that leaves in these JSON files. If a
// server does not start, the error names the directory with its log.
func (r recording) carryOut(ctx context.Context, own binaries.Overrides, progress io.Writer, files ...string) (bodies [][]byte, err error) {
	out, err := os.MkdirTemp("", "skewproof-record-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the recording: %w", err)
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(out)
		}
	}()
	plan := scenario.Plan{Bounds: history.DefaultBounds}
	for i, version := range r.versions {
		plan.Servers = append(plan.Servers, scenario.Server{Name: scenario.ServerName(i), Version: version})
	}
	p, err := Spec{
		Own:     &Own{Name: "record", Happens: "Servers serve.", Plan: plan},
		Subject: scenario.SubjectNone, From: r.versions[0], To: r.versions[len(r.versions)-1], Servers: len(r.versions),
		RuntimeConfig: r.apis, Binaries: own, Out: out, Keep: true, NoLoad: true,
	}.Plan()
	if err != nil {
		return nil, err
	}
	p.Spec.Keep = false // this cluster is not used afterwards
	if err := p.backend.prepare(ctx, p); err != nil {
		return nil, err
	}
	dir, err := NewDir(out, p.Scenario.Name+"-"+p.Spec.Subject)
	if err != nil {
		return nil, err
	}
	c := Console{Out: io.Discard, Progress: progress}
	j := &job{Plan: p, Run: p.describe(), Dir: dir, Console: c, status: c.Status(), want: &r.want}
	var cut error
	if err := p.backend.carryOut(ctx, j, func(why error) { cut = why }); err != nil || cut != nil {
		return nil, errors.Join(err, cut)
	}
	for _, name := range files {
		body, err := os.ReadFile(dir.recorded(name))
		if err != nil {
			return nil, fmt.Errorf("read what was recorded: %w", err)
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

func (d Dir) recorded(name string) string { return d.File(name + ".json") }

// writeDocuments writes the answers of the first server of a cluster at both roots.
func (d Dir) writeDocuments(ctx context.Context, made *local.Cluster, server string) error {
	config, err := made.Direct(server)
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of server %s: %w", server, err)
	}
	for _, root := range recorded.Roots {
		body, err := client.RESTClient().Get().AbsPath(root).SetHeader("Accept", workload.AcceptNoPeer).MaxRetries(0).Do(ctx).Raw()
		if err == nil {
			err = os.WriteFile(d.recorded(root), body, 0o644)
		}
		if err != nil {
			return fmt.Errorf("record what server %s serves at /%s: %w", server, root, err)
		}
	}
	return nil
}

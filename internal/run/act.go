package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// listWord asks for the present state of the cluster instead of a step.
const listWord = "list"

// Act carries out a step on the cluster that the run in this directory holds, and shows what was
// done. The words are as for [scenario.ParseStep], or "list", which shows the present state. If the
// run lacks a version, Act fetches the version first. The kind of an error about the words is
// [KindUsage].
func (d Dir) Act(ctx context.Context, words []string, c Console) error {
	if err := d.isDirectory(); err != nil {
		return err
	}
	var r request
	if len(words) != 1 || words[0] != listWord {
		s, err := scenario.ParseStep(words)
		if err == nil {
			err = checkVersion(s.Version)
		}
		if err != nil {
			return wrong(err)
		}
		r.Step, r.Words = &s, words
		if r.Binary, err = d.binaryFor(ctx, s.Version, c); err != nil {
			return err
		}
	}
	a, err := d.ask(ctx, r)
	if err != nil {
		return err
	}
	for _, line := range a.Said {
		fmt.Fprintln(c.Out, line)
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return nil
}

// checkVersion refuses a text that is not a version of a kube-apiserver. An empty version means
// that of the server.
func checkVersion(version string) error {
	if version == "" {
		return nil
	}
	r, err := release.Parse(version)
	if err == nil {
		_, err = binaries.ParseVersion(binaries.KubeAPIServer, r.Version)
	}
	return err
}

// binaryFor returns the kube-apiserver of a version, if the run uses processes and does not have
// that version. It fetches the binary before the step, because the sandbox has no network access.
func (d Dir) binaryFor(ctx context.Context, version string, c Console) (string, error) {
	if version == "" {
		return "", nil
	}
	conn, err := d.dial(ctx) // fetching may take minutes, so check first that a run holds its cluster
	if err != nil {
		return "", err
	}
	_ = conn.Close()
	m, err := d.readManifest()
	if err != nil || m.Run.Backend != scenario.BackendLocal || m.APIServers[version] != "" {
		return "", err
	}
	own, err := OverridesOf(nil)
	if err != nil {
		return "", err
	}
	got, err := (&binaries.Store{Overrides: own, Progress: c.Progress}).Get(ctx, binaries.Component(local.Program(m.Run.Subject, nil)), release.Of(version))
	return got.Path, BinaryError(err)
}

// ask sends a request to the run and waits for the answer, however long the step takes.
func (d Dir) ask(ctx context.Context, r request) (a answer, err error) {
	conn, err := d.dial(ctx)
	if err != nil {
		return a, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err = json.NewEncoder(conn).Encode(r); err == nil {
		err = json.NewDecoder(conn).Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return a, errors.New("interrupted: a step that has begun goes on; 'skewproof step DIR list' shows what is on")
	case err != nil:
		return a, fmt.Errorf("%s ended before it said what became of the step: %w", d, err)
	}
	return a, nil
}

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"k8s.io/client-go/discovery"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/fieldskew"
	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/recorded"
)

// Fields starts one kube-apiserver of each version in a sandbox, with their default flags and APIs,
// and compares how they treat the fields of objects. flips are the feature gates that are switched,
// in the hope that a difference vanishes. own are the user's own binaries.
func Fields(ctx context.Context, from, to string, flips []gates.Flip, own binaries.Overrides, progress io.Writer) (table recorded.FieldTable, err error) {
	r := recording{versions: []string{from, to}, apis: new(""), want: wanted{Fields: true, Gates: flips}}
	got, err := r.carryOut(ctx, own, progress, fieldsFile)
	if err == nil {
		err = json.Unmarshal(got[0], &table)
	}
	return table, err
}

// These are the files of recordings, beside those of the documents.
const (
	fieldsFile    = "fields"
	behaviourFile = "behaviour"
)

// writeWanted records what is wanted of the servers of a cluster.
func (d Dir) writeWanted(ctx context.Context, made *local.Cluster, m manifest, status func(string, ...any)) error {
	switch {
	case m.Want.Documents:
		return d.writeDocuments(ctx, made, m.Run.Servers[0].Name)
	case len(m.Want.Kinds) > 0:
		return d.writeBehaviour(ctx, made, m.Run.Servers[0], m.Want.Kinds, status)
	}
	var sides [2]fieldskew.Side
	var served [2][]fieldskew.Resource
	for i, s := range m.Run.Servers[:2] {
		config, err := made.Direct(s.Name)
		if err != nil {
			return err
		}
		config.QPS = -1 // without a rate limit
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return fmt.Errorf("make a client of server %s: %w", s.Name, err)
		}
		if sides[i], err = fieldskew.NewSide(s.Version, client); err != nil {
			return err
		}
		if served[i], err = fieldskew.Resources(client); err != nil {
			return fmt.Errorf("read what server %s serves: %w", s.Name, err)
		}
	}
	resources := slices.DeleteFunc(served[1], func(r fieldskew.Resource) bool {
		return !slices.ContainsFunc(served[0], func(of fieldskew.Resource) bool { return of.GVR == r.GVR })
	})
	found, err := fieldskew.Sweep(ctx, sides, resources, status)
	if err == nil {
		err = found.Update(ctx)
	}
	if err == nil && len(m.Want.Gates) > 0 {
		err = found.Explain(ctx, m.Want.Gates, strings.TrimPrefix(semver.MajorMinor(m.Run.Servers[0].Version), "v"), restarting(made, m.Run.Servers), status)
	}
	if err != nil {
		return err
	}
	return d.writeJSON(d.recorded(fieldsFile), found.Table)
}

// restarting restarts servers with other feature gates.
func restarting(made *local.Cluster, servers []history.Server) fieldskew.Restart {
	return func(ctx context.Context, side int, switched map[string]bool, emulated string) error {
		setup := &scenario.Setup{FeatureGates: gates.With("", switched), EmulatedVersion: emulated}
		if *setup == (scenario.Setup{}) {
			setup = nil
		}
		name := servers[side].Name
		if made.Serving(name) > 0 {
			if err := made.StopServer(ctx, name); err != nil {
				return err
			}
		}
		if err := made.Configure(name, setup); err != nil {
			return err
		}
		if err := made.StartServer(ctx, name, ""); err == nil || setup == nil || ctx.Err() != nil {
			return err
		} else {
			return fmt.Errorf("%w: %w", fieldskew.ErrRefused, err)
		}
	}
}

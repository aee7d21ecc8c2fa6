package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
	"k8s.io/client-go/rest"

	discovered "github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/fieldskew"
	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/recorded"
)

// Fields says how the fields of two versions are compared.
type Fields struct {
	// Resources are the only ones that are compared. Empty means all.
	Resources []string `json:"resources,omitempty"`
	// Gates are the feature gates that are switched, in the hope that a difference vanishes.
	Gates []gates.Flip `json:"gates,omitempty"`
}

// Compare starts one kube-apiserver of each version in a sandbox, with their default flags and
// APIs, and compares how they treat the fields of objects. own are the user's own binaries.
func (f Fields) Compare(ctx context.Context, from, to string, own binaries.Overrides, progress io.Writer) (table recorded.FieldTable, err error) {
	r := recording{versions: []string{from, to}, apis: new(""), want: wanted{Fields: &f}}
	err = r.carryOut(ctx, own, progress, func(dir Dir) error {
		body, err := os.ReadFile(dir.fields())
		if err == nil {
			err = json.Unmarshal(body, &table)
		}
		if err != nil {
			return fmt.Errorf("read the table of fields: %w", err)
		}
		return nil
	})
	return table, err
}

func (d Dir) fields() string { return d.File("fields.json") }

// writeWanted records what is wanted of the servers of a cluster.
func (d Dir) writeWanted(ctx context.Context, made *local.Cluster, m manifest, status func(string, ...any)) error {
	switch {
	case m.Want.Documents:
		return d.writeDocuments(ctx, made, m.Run.Servers[0].Name)
	case len(m.Want.Kinds) > 0:
		return d.writeBehaviour(ctx, made, m.Run.Servers[0], m.Want.Kinds, status)
	}
	var sides [2]fieldskew.Side
	var served [2]history.Document
	for i, s := range m.Run.Servers[:2] {
		config, err := made.Direct(s.Name)
		if err != nil {
			return err
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return fmt.Errorf("make a client of server %s: %w", s.Name, err)
		}
		server := fieldskew.HTTPServer{Client: client, URL: config.Host}
		sides[i] = fieldskew.Side{Version: s.Version, Server: server}
		if sides[i].Schemas, err = server.Schemas(ctx); err != nil {
			return err
		}
		if served[i], err = resourcesOf(ctx, client, config.Host); err != nil {
			return fmt.Errorf("read what server %s serves: %w", s.Name, err)
		}
	}
	var resources []fieldskew.Resource
	for _, r := range served[1].Resources {
		if both := slices.ContainsFunc(served[0].Resources, func(of history.Resource) bool { return of.GVR == r.GVR }); both &&
			slices.Contains(r.Verbs, "create") && (len(m.Want.Fields.Resources) == 0 || slices.Contains(m.Want.Fields.Resources, r.Resource)) {
			resources = append(resources, fieldskew.Resource{GVR: r.GVR, Kind: r.Kind, Namespaced: r.Namespaced})
		}
	}
	for _, name := range m.Want.Fields.Resources {
		if !slices.ContainsFunc(resources, func(r fieldskew.Resource) bool { return r.Resource == name }) {
			return fmt.Errorf("compare the fields of %q: %s and %s serve no resource of that name by default that both let a client create; "+
				"name it as in the URL, such as statefulsets", name, sides[0].Version, sides[1].Version)
		}
	}
	found, err := fieldskew.Sweep(ctx, sides, resources, status)
	if err == nil {
		err = found.Update(ctx)
	}
	if err == nil && len(m.Want.Fields.Gates) > 0 {
		err = found.Explain(ctx, m.Want.Fields.Gates, strings.TrimPrefix(semver.MajorMinor(m.Run.Servers[0].Version), "v"), restarting(made, m.Run.Servers), status)
	}
	if err != nil {
		return err
	}
	return d.writeJSON(d.fields(), found.Table)
}

// restarting restarts servers with other feature gates.
func restarting(made *local.Cluster, servers []history.Server) fieldskew.Restart {
	return func(ctx context.Context, side int, gates map[string]bool, emulated string) error {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(gates)) {
			words = append(words, name+"="+strconv.FormatBool(gates[name]))
		}
		setup := &scenario.Setup{FeatureGates: strings.Join(words, ","), EmulatedVersion: emulated}
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

func resourcesOf(ctx context.Context, client *http.Client, host string) (history.Document, error) {
	var bodies [2][]byte
	for i, root := range Roots {
		var err error
		if bodies[i], err = document(ctx, client, host+"/"+root); err != nil {
			return history.Document{}, err
		}
	}
	return discovered.ParseRoots(bodies[0], bodies[1])
}

package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// remove removes the nodes, volumes and network of a cluster. They need not exist.
func remove(ctx context.Context, cluster string) error {
	var errs []error
	for _, made := range []struct{ list, remove []string }{
		{[]string{"ps", "--all", "--quiet", "--filter", "label=" + kindLabel + "=" + cluster}, []string{"rm", "--force", "--volumes"}},
		{[]string{"network", "ls", "--quiet", "--filter", "label=" + runLabel + "=" + cluster}, []string{"network", "rm"}},
	} {
		ids, err := dockerLines(ctx, made.list...)
		errs = append(errs, err)
		if len(ids) > 0 {
			_, err := Docker(ctx, nil, append(made.remove, ids...)...)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Leftovers returns the names of the clusters of runs: of killed runs and of active ones.
func Leftovers(ctx context.Context) ([]string, error) {
	if _, err := FindEngine(ctx); err != nil {
		return nil, err
	}
	nodes, err := dockerLines(ctx, "ps", "--all", "--filter", "label="+kindLabel, "--format", `{{.Label "`+kindLabel+`"}}`)
	if err != nil {
		return nil, err
	}
	networks, err := dockerLines(ctx, "network", "ls", "--filter", "label="+runLabel, "--format", `{{.Label "`+runLabel+`"}}`)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(append(nodes, networks...), func(name string) bool { return !ours(name) })
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Clean removes a cluster that a run left behind, and the directory of the run's keys. It returns
// this directory if it still existed. It refuses a name that is not that of a run's cluster.
func Clean(ctx context.Context, cluster string) (keys string, err error) {
	if !ours(cluster) {
		return "", errors.New("cluster " + cluster + " was not made by skewproof: use 'kind delete cluster'")
	}
	keys, err = Docker(ctx, nil, "network", "ls", "--filter", "label="+runLabel+"="+cluster, "--format", `{{.Label "`+keysLabel+`"}}`)
	if err := errors.Join(err, remove(ctx, cluster)); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(keys, "ca.key")); !filepath.IsAbs(keys) || err != nil {
		return "", nil //nolint:nilerr // they are removed already
	}
	if err := os.RemoveAll(keys); err != nil {
		return "", fmt.Errorf("remove the run's keys: %w", err)
	}
	return keys, nil
}

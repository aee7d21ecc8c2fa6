package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/run"
)

func newBinaries() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "binaries",
		Short: "List, get or remove cached kube-apiserver and etcd binaries",
		Args:  args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBinariesList(), newBinariesGet(), newBinariesPrune())
	return cmd
}

func newBinariesList() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the cached binaries",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, damaged := (&binaries.Store{}).List() // the error names damaged entries; the table still lists the others
			if output != "" {
				return errors.Join(writeBinaries(cmd.OutOrStdout(), output, all), damaged)
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, b := range all {
				fmt.Fprintf(table, "%s\t%s\t%d MB\t%s\n", b.Component, b.Version, b.Size/1e6, b.How)
			}
			return errors.Join(table.Flush(), damaged)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "wide, json or yaml")
	return cmd
}

// cached is a binary in the cache, for programs.
type cached struct {
	binaries.Binary
	Path string `json:"path"`
}

// writeBinaries writes a list of binaries in a form that --output names.
func writeBinaries(out io.Writer, form string, all []binaries.Binary) error {
	listed := make([]cached, 0, len(all))
	for _, b := range all {
		listed = append(listed, cached{b, b.Path})
	}
	switch form {
	case "wide":
		for _, b := range all {
			if _, err := fmt.Fprintf(out, "%s %s, %s\n    %s\n    sha256:%s\n    %s\n", b.Component, b.Version, b.Platform, b.Path,
				b.SHA256, b.How); err != nil {
				return err
			}
		}
		return nil
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(listed)
	case "yaml":
		text, err := yaml.Marshal(listed)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	return usage("--output %q: want wide, json or yaml", form)
}

func newBinariesGet() *cobra.Command {
	var component string
	cmd := &cobra.Command{
		Use:   "get VERSION…",
		Short: "Download or build binaries of the given versions into the cache",
		Args:  args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := binaries.ParseComponent(component)
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			own, err := run.OverridesOf(nil) // a binary that the user gives need not be fetched
			if err != nil {
				return err
			}
			store := &binaries.Store{Overrides: own, Progress: cmd.ErrOrStderr()}
			for _, version := range args {
				b, err := store.Get(cmd.Context(), c, version)
				if err != nil {
					return run.BinaryError(err)
				}
				fmt.Fprintln(cmd.OutOrStdout(), b.Path)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&component, "component", string(binaries.KubeAPIServer), "kube-apiserver, etcd, kubelet, …")
	return cmd
}

func newBinariesPrune() *cobra.Command {
	return &cobra.Command{
		Use:   "prune",
		Short: "Remove all cached binaries",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			removed, err := (&binaries.Store{}).Prune()
			for _, b := range removed {
				fmt.Fprintf(cmd.OutOrStdout(), "removed %s %s, %d MB\n", b.Component, b.Version, b.Size/1e6)
			}
			return err
		},
	}
}

// newKindClean makes the command that removes what killed runs left in the Docker engine.
func newKindClean() *cobra.Command {
	return &cobra.Command{
		Use:   "kind-clean [CLUSTER…]",
		Short: "Remove kind clusters, networks and keys that killed runs have left behind",
		Long: `Remove kind clusters, networks and keys that killed runs have left behind: those with the given names, or all that skewproof
made. Runs that are still under way lose their clusters too. A run that ends by itself, or by Ctrl-C, leaves nothing. Node images stay.`,
		RunE: func(cmd *cobra.Command, clusters []string) error {
			if len(clusters) == 0 {
				var err error
				if clusters, err = kind.Leftovers(cmd.Context()); err != nil {
					return err
				}
			}
			for _, name := range clusters {
				keys, err := kind.Clean(cmd.Context(), name)
				if err != nil {
					return fmt.Errorf("remove cluster %s: %w", name, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", name)
				if keys != "" {
					fmt.Fprintf(cmd.OutOrStdout(), "removed its keys, %s\n", keys)
				}
			}
			if len(clusters) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing is left of any run")
			}
			return nil
		},
	}
}

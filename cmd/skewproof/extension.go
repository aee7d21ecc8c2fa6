package main

import (
	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/extension"
)

// newExtension is the program behind the aggregated APIs of a run. People never call it.
func newExtension() *cobra.Command {
	var c extension.Config
	cmd := &cobra.Command{
		Use:    "extension",
		Short:  "Serve the aggregated APIs of a run",
		Hidden: true,
		Args:   args(cobra.NoArgs),
		RunE:   func(cmd *cobra.Command, _ []string) error { return notRun(extension.Run(cmd.Context(), c)) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.Address, "address", "", "host:port to listen on")
	flags.StringVar(&c.CertFile, "tls-cert-file", "", "its serving certificate")
	flags.StringVar(&c.KeyFile, "tls-private-key-file", "", "the key of that")
	flags.StringVar(&c.ClientCAFile, "requestheader-client-ca-file", "", "the authority of front proxies")
	flags.StringVar(&c.AllowedName, "requestheader-allowed-name", "", "the common name of the front proxy that may speak for others")
	flags.StringVar(&c.APIs, "apis", "", "the file that says what to serve")
	return cmd
}

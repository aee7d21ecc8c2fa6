package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"github.com/skewproof/skewproof/proxy/sidecar"
)

// maxVerbosity is the highest verbosity at which client-go logs no bodies, because the bodies of
// token reviews contain tokens.
const maxVerbosity = 7

// helpWidth is the width of the help text for flags, in columns.
const helpWidth = 120

func newProxy() *cobra.Command {
	o := sidecar.NewOptions()
	var format string
	var verbosity int
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Run the reference Mixed Version Proxy in front of a kube-apiserver",
		Long: `Run the reference Mixed Version Proxy (KEP-4020) in front of a kube-apiserver of any version. The proxy of the kube-apiserver itself must be off.

The proxy authenticates callers as the kube-apiserver would. It sends requests to the kube-apiserver if that server can serve them, and to a peer
if only peers can. It reports the same discovery as its peers. Flags that kube-apiserver has too have the same names.

SIGTERM or Ctrl-C ends the proxy when its requests are done. A second signal ends it at once.`,
		Example: `  skewproof proxy --upstream https://127.0.0.1:6444 --upstream-ca-file ca.crt \
    --tls-cert-file serving.crt --tls-private-key-file serving.key --client-ca-file ca.crt --peer-ca-file ca.crt \
    --requestheader-client-ca-file front-proxy-ca.crt --requestheader-allowed-names front-proxy-client \
    --proxy-client-cert-file front-proxy-client.crt --proxy-client-key-file front-proxy-client.key
  curl http://127.0.0.1:6440/debug/peers?format=text     # the peers, and what is known of each`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := newLogger(cmd.ErrOrStderr(), format, verbosity)
			if err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return wrongOptions(err)
			}
			o.Logger = logger
			return notRun(sidecar.Run(cmd.Context(), o))
		},
	}
	sets := o.Flags()
	logging := sets.FlagSet("logging")
	logging.StringVar(&format, "log-format", "text", "The format of the log on standard error: text or json.")
	logging.IntVar(&verbosity, "v", 0, "How much to log: 0 for operation, 4 to 7 to find the cause of a fault.")
	for _, name := range sets.Order {
		cmd.Flags().AddFlagSet(sets.FlagSets[name])
	}
	cmd.Flags().SortFlags = false
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n", cmd.Long, cmd.UseLine(), cmd.Example)
		cliflag.PrintSections(out, sets, helpWidth)
	})
	return cmd
}

// wrongOptions lists all errors, one a line.
func wrongOptions(err error) error {
	var several interface{ Unwrap() []error }
	if !errors.As(err, &several) || len(several.Unwrap()) == 1 {
		return &exitError{code: exitUsage, err: err}
	}
	var lines strings.Builder
	for _, one := range several.Unwrap() {
		fmt.Fprintf(&lines, "\n  %s", strings.ReplaceAll(one.Error(), "\n", "\n  "))
	}
	return usage("%d options are wrong:%s", len(several.Unwrap()), lines.String())
}

// newLogger logs to out, as klog does. A verbosity of n includes what libraries log at V(n).
func newLogger(out io.Writer, format string, verbosity int) (*slog.Logger, error) {
	if verbosity < 0 || verbosity > maxVerbosity {
		return nil, usage("--v %d: want 0 to %d; what is logged above that has tokens in it", verbosity, maxVerbosity)
	}
	options := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	var handler slog.Handler
	switch format {
	case "text":
		handler = slog.NewTextHandler(out, options)
	case "json":
		handler = slog.NewJSONHandler(out, options)
	default:
		return nil, usage("--log-format %q: want text or json", format)
	}
	logger := slog.New(handler)
	var klogFlags flag.FlagSet
	klog.InitFlags(&klogFlags)
	if err := klogFlags.Set("v", strconv.Itoa(verbosity)); err != nil {
		return nil, fmt.Errorf("set the verbosity of the libraries: %w", err)
	}
	klog.SetSlogLogger(logger)
	return logger, nil
}

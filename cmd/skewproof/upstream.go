package main

import (
	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/reports"
)

func newUpstream() *cobra.Command {
	var u suite.Upstream
	cmd := &cobra.Command{
		Use:   "upstream-e2e",
		Short: "Run Kubernetes' own end-to-end tests through the proxy of an older server",
		Long: `Run Kubernetes' own end-to-end tests (e2e.test of k8s.io/kubernetes) against a control plane of two versions, and tell the
failures of the proxy from those of the control plane: a failure counts only if the spec passes directly at the same server.

Paths:
  direct    the tests are clients of an older server; no server has a proxy
  old       the tests are clients of an older server, whose proxy is tested
  balancer  the tests reach all servers through a load balancer, during a rolling upgrade

The paths old and balancer run the path direct first, or take its results from --direct. The selection has the specs of the API machinery,
and of the life of API objects, that need no node. docs/upstream-e2e.md says which specs these are, and which of them are expected to fail.
There is a kube-controller-manager, and no scheduler, kubelet or network. The binaries are built from the published Go modules (5 minutes
for e2e.test, once).

Exit codes: 1 if a spec failed that passes directly, or the run violated an invariant (a server crashed, controllers did harm); 2 if
something was not run, or proves nothing.`,
		Example: `  skewproof upstream-e2e --path direct --out _out/direct
  skewproof upstream-e2e --path old --subject reference --direct _out/direct
  skewproof upstream-e2e --path balancer --subject builtin
  skewproof upstream-e2e --path old --focus 'ConfigMap|ResourceQuota' --direct-only-failed`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := begin(cmd, &u.Options, u.Spec); err != nil {
				return err
			}
			report, err := u.Run(cmd.Context())
			return resultError(report.Result, err)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&u.Path, "path", reports.PathOld, "how the tests reach the control plane: direct, old or balancer")
	flags.StringVar(&u.Spec.Subject, "subject", "", "whose Mixed Version Proxy is tested: builtin, reference or none (default builtin)")
	flags.StringVar(&u.Spec.From, "from", "", "the older kube-apiserver version, also that of the kube-controller-manager")
	show(flags, "from", run.DefaultFrom)
	flags.StringVar(&u.Spec.To, "to", "", "the newer kube-apiserver version")
	show(flags, "to", run.DefaultTo)
	flags.StringVar(&u.Tests, "tests", "", "the version of the tests (default that of --to)")
	flags.StringVar(&u.Focus, "focus", "", "a regular expression that chooses among the specs of the selection by their full names")
	flags.StringVar(&u.Direct, "direct", "",
		"the directory of an earlier run with --path direct and the same versions, whose results are taken")
	flags.BoolVar(&u.OnlyFailed, "direct-only-failed", false,
		"run the path direct afterwards, and only with the specs that failed (half the time)")
	flags.StringVar(&u.Spec.Etcd, "etcd", "", "etcd version, "+binaries.OldestEtcd+" or later")
	show(flags, "etcd", binaries.DefaultEtcd)
	suite.RegisterBinaries(flags, &u.Spec, "")
	flags.StringVar(&u.Out, "out", "", "directory for reports and runs (default _out/upstream-e2e-PATH-SUBJECT-TIME)")
	return cmd
}

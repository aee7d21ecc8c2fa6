package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/run"
)

func newShell() *cobra.Command {
	return &cobra.Command{
		Use:   "shell DIR [-- COMMAND…]",
		Short: "Enter the sandbox of a run that was started with --keep",
		Long: `Enter the sandbox of a run that was started with --keep, in the present directory. KUBECONFIG names a file with two contexts
for each server: 'b' leads to the address that clients of b use over the link into which faults are injected;
'b-direct' leads to the kube-apiserver itself, around all links. The context 'balancer' is a load balancer over all servers, over the same
links as 'b'. The keys are in $SKEWPROOF_KEYS. The programs in the shell are your own: if you have no kubectl, 'skewproof binaries get
--component kubectl VERSION' gets one and prints its path.

'skewproof step DIR' acts on the links from outside the shell. The API of toxiproxy at $TOXIPROXY_URL shows them inside.`,
		Example: `  skewproof shell _out/quiet-builtin-20261121-101500
  skewproof shell DIR -- kubectl --context b get --raw /apis
  skewproof step DIR list                          # the servers and the faults that are on, from outside the shell
  skewproof shell DIR -- sh -c 'curl --silent $TOXIPROXY_URL/proxies'`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			absolute, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return run.Dir(absolute).Shell(args[1:])
		},
	}
}

func newStep() *cobra.Command {
	return &cobra.Command{
		Use:   "step DIR ACTION…",
		Short: "Act on the cluster of a run that was started with --keep",
		Long: `Carry out one step on the cluster of a run that was started with --keep, and return when it is done. Steps are carried out
one at a time, by the same code as those of scenarios. They are not recorded, since the run is over.

Actions:
  list                                  show the servers, and the active faults
  stop, kill, pause or resume SERVER    SIGTERM, SIGKILL, SIGSTOP and SIGCONT
  start or restart SERVER [VERSION]     without a version, the one that the server had
  replace SERVER VERSION                stop it, and start that version in its place; it is fetched if the run does not have it
  KIND FROM TO [PARAMETER=VALUE…]       inject a fault into the link from FROM (a server, or client) to TO (a server, or etcd):
                                        bandwidth, cut, latency, limit-data, reset, slicer, slow-close or timeout
  heal [LABEL]                          end the fault of that label (the words that injected it, or as 'list' shows it), or all faults
  break-discovery SERVER PATH [HOW]     let fetches of /api or /apis by peers fail: with 500, breaks-off or cut-short
  restore-discovery SERVER PATH         let them succeed again
  delete-lease SERVER                   delete the identity lease of the server
  compact-etcd, defragment-etcd         do what administrators do
  withdraw-discovery, grant-discovery   take the right to read the discovery of peers from servers, or give it to them`,
		Example: `  skewproof step DIR cut b a
  skewproof step DIR latency client b latency=2s direction=down
  skewproof step DIR heal cut b a
  skewproof step DIR replace b v1.37.1
  skewproof step DIR list`,
		Args: args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			absolute, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return run.Dir(absolute).Act(cmd.Context(), args[1:], console(cmd))
		},
	}
}

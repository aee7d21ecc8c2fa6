// Command kube-apiserver-reference is the kube-apiserver of the version that it is built with, with
// skewproof's Mixed Version Proxy in place of its own. It has the flags of that kube-apiserver, and
// --mixed-version-proxy-policy.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	_ "time/tzdata" // for timeZone of CronJobs, as in kube-apiserver

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json, as in kube-apiserver
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	utilversion "k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	core "k8s.io/kubernetes/pkg/apis/core"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/apiserver"
)

func main() { os.Exit(cli.Run(command())) }

func command() *cobra.Command {
	s := options.NewServerRunOptions()
	policy := proxy.Reference().Name
	ctx := signals()
	cmd := &cobra.Command{
		Use:          "kube-apiserver",
		Long:         "kube-apiserver-reference is a kube-apiserver with the Mixed Version Proxy of skewproof.",
		SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			// The server's own clients should not log warnings that the server sends to itself.
			rest.SetDefaultWarningHandler(rest.NoWarnings{})
			return setGates(s)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			chosen, err := proxy.ParsePolicy(policy)
			if err != nil {
				return fmt.Errorf("--%s: %w", policyFlag, err)
			}
			if err := logsapi.ValidateAndApply(s.Logs, utilfeature.DefaultFeatureGate); err != nil {
				return err
			}
			cliflag.PrintFlags(cmd.Flags())
			completed, err := complete(ctx, s)
			if err != nil {
				return err
			}
			if errs := completed.Validate(); len(errs) != 0 {
				return utilerrors.NewAggregate(errs)
			}
			addMetrics(s)
			part, err := takesPart(completed, cmd.Flag("feature-gates").Value.String())
			if err != nil {
				return err
			}
			klog.Infof("Version: %+v, with the Mixed Version Proxy of skewproof, policy %s", utilversion.Get(), policy)
			return run(ctx, completed, chosen, part)
		},
		Args: cobra.NoArgs,
	}
	cmd.SetContext(ctx)
	sets := s.Flags()
	sets.FlagSet("generic").StringVar(&policy, policyFlag, policy,
		"How the Mixed Version Proxy behaves: the name of a preset of skewproof, and changes of single switches, as PRESET,SWITCH=VALUE.")
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	addFlags(s, sets)
	for _, f := range sets.FlagSets {
		cmd.Flags().AddFlagSet(f)
	}
	cliflag.SetUsageAndHelpFunc(cmd, sets, 0)
	return cmd
}

// policyFlag is the one flag that the kube-apiserver of a release does not have.
const policyFlag = "mixed-version-proxy-policy"

// gate is the feature gate of the Mixed Version Proxy.
const gate featuregate.Feature = "UnknownVersionInteroperabilityProxy"

// takesPart reports whether the proxy takes part: if the gate is on and --peer-ca-file is given, as
// with the server's own. Flags that ask for a proxy and cannot work are an error here: requests for
// what only peers serve would get wrong answers. gates is the value of --feature-gates.
func takesPart(o options.CompletedOptions, gates string) (bool, error) {
	peer := o.PeerAdvertiseAddress
	switch {
	case !utilfeature.DefaultFeatureGate.Enabled(gate):
		return false, nil
	case o.PeerCAFile == "" && strings.Contains(gates, string(gate)+"="):
		return false, fmt.Errorf("--feature-gates switches %s on, and --peer-ca-file is missing: no peer could be verified; give the authority "+
			"that issued the peers' serving certificates, or switch the gate off", gate)
	case (peer.PeerAdvertiseIP == "") != (peer.PeerAdvertisePort == ""):
		return false, errors.New("--peer-advertise-ip and --peer-advertise-port belong together: give both, or neither")
	}
	return o.PeerCAFile != "", nil
}

// run runs the server. part says whether its proxy takes part.
func run(ctx context.Context, o options.CompletedOptions, policy proxy.Policy, part bool) error {
	authority := o.PeerCAFile
	o.PeerCAFile = "" // so that the server's own proxy is not in its chain
	if err := prepare(&o); err != nil {
		return err
	}
	config, err := app.NewConfig(o)
	if err != nil {
		return err
	}
	var mixed *apiserver.Proxy
	if part {
		keys, err := ownKeys(ctx, config)
		if err != nil {
			return err
		}
		generic := config.Aggregator.GenericConfig
		if mixed, err = apiserver.Install(&generic.Config, apiserver.Options{
			Policy: policy, PeerCAFile: authority, ClientCertFile: o.ProxyClientCertFile, ClientKeyFile: o.ProxyClientKeyFile,
			Address: address(o), Port: o.SecureServing.BindPort, Etcd: keys, ShutdownDelay: generic.ShutdownDelayDuration,
			Logger: slog.New(logr.ToSlogHandler(klog.Background().WithName("mixed-version-proxy"))),
		}); err != nil {
			return err
		}
	}
	completed, err := config.Complete()
	if err != nil {
		return err
	}
	server, err := app.CreateServerChain(completed)
	if err != nil {
		return err
	}
	if mixed != nil {
		if err := mixed.Attach(server.GenericAPIServer); err != nil {
			return err
		}
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return err
	}
	return serve(ctx, prepared)
}

// ownKeys connects to etcd for the keys that kube-apiservers write about themselves, in place of
// the server's own writer. The connection ends with the process, because the proxy serves on for a
// while after the context has ended.
func ownKeys(ctx context.Context, config *app.Config) (*apiserver.Etcd, error) {
	if own := keyWriter(config); *own != nil {
		*own = apiserver.Silent{PeerEndpointLeaseReconciler: *own}
	}
	factory := storageFactory(config)
	servers, err := storageConfig(factory, core.Resource("apiServerPeerIPInfo"))
	if err != nil {
		return nil, fmt.Errorf("configure the storage of servers' addresses: %w", err)
	}
	masters, err := storageConfig(factory, core.Resource("apiServerIPInfo"))
	if err != nil {
		return nil, fmt.Errorf("configure the storage of kube-apiservers' IP addresses: %w", err)
	}
	return apiserver.NewEtcd(context.WithoutCancel(ctx), servers, masters, remove)
}

// address is where peers reach this server, as in kube-apiserver (getPeerAddress).
func address(o options.CompletedOptions) string {
	if peer := o.PeerAdvertiseAddress; peer.PeerAdvertiseIP != "" && peer.PeerAdvertisePort != "" {
		return net.JoinHostPort(peer.PeerAdvertiseIP, peer.PeerAdvertisePort)
	}
	return net.JoinHostPort(o.GenericServerRunOptions.AdvertiseAddress.String(), strconv.Itoa(o.SecureServing.BindPort))
}

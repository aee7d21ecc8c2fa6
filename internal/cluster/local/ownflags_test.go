package local

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/cluster/users"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The user's own flags reach the command line of every subject, once each.
func TestOwnFlagsAreGiven(t *testing.T) {
	ga := "api/ga=true"
	for _, c := range []struct {
		own     history.OwnFlags
		subject string
		setup   *scenario.Setup
		want    []string
		not     string
	}{
		{history.OwnFlags{}, scenario.SubjectBuiltin, nil, []string{"--runtime-config=api/all=true", "--feature-gates=" + scenario.Gate + "=true"}, ""},
		{history.OwnFlags{RuntimeConfig: &ga}, scenario.SubjectBuiltin, nil, []string{"--runtime-config=api/ga=true"}, "api/all"},
		{history.OwnFlags{RuntimeConfig: new("")}, scenario.SubjectNone, nil, nil, "--runtime-config"},
		{history.OwnFlags{Flags: []string{"feature-gates=WatchList=false", "max-requests-inflight=7"}}, scenario.SubjectReference, nil,
			[]string{"--feature-gates=" + scenario.Gate + "=true,WatchList=false", "--max-requests-inflight=7"}, ""},
		{history.OwnFlags{Flags: []string{"profiling", "endpoint-reconciler-type=none", "service-account-issuer=https://a", "service-account-issuer=https://b",
			"authorization-mode=Node,RBAC", "emulated-version=kube=1.33"}}, scenario.SubjectBuiltin, nil,
			[]string{"--profiling=true", "--endpoint-reconciler-type=none", "--service-account-issuer=https://a", "--service-account-issuer=https://b",
				"--authorization-mode=Node,RBAC", "--emulated-version=kube=1.33"}, "--requestheader-uid-headers"},
		{history.OwnFlags{Flags: []string{"feature-gates=kube:A=T", "feature-gates=kube:B=0, kube:A=f"}}, scenario.SubjectBuiltin, nil,
			[]string{"--feature-gates=kube:A=false,kube:B=false,kube:" + scenario.Gate + "=true"}, ",U"},
		// A step of 'skewproof step' sets up a server with a flag that the user gives, too.
		{history.OwnFlags{Flags: []string{"goaway-chance=0.001"}}, scenario.SubjectBuiltin, &scenario.Setup{Goaway: scenario.On},
			[]string{"--goaway-chance=0.02"}, "0.001"},
		// kubeadm gives no gate.
		{history.OwnFlags{Flags: []string{"feature-gates=WatchList=false"}}, scenario.SubjectBuiltin, &scenario.Setup{Flags: scenario.FlagsKubeadm},
			[]string{"--feature-gates=WatchList=false"}, scenario.Gate},
	} {
		p := place(0, "a")
		p.Flags, p.Setup = c.own, c.setup
		args, err := APIServerArguments("v1.37.1", c.subject, p, testFiles)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !slices.Contains(args, want) {
				t.Errorf("%+v: %q lacks %s", c.own, args, want)
			}
		}
		if joined := strings.Join(args, " "); c.not != "" && strings.Contains(joined, c.not) || strings.Count(joined, "--feature-gates=") > 1 || strings.Count(joined, "--authorization-mode=") > 1 {
			t.Errorf("%+v: %q has %s, or a flag twice", c.own, args, c.not)
		}
	}
}

// theirs is a start of a program of the user's own.
func theirs(s Start) Start {
	s.Own = true
	return s
}

// A flag is refused if the run gives it another value at a start of this plan, or could not observe
// the servers.
func TestOwnFlagsThatWouldBreakTheRun(t *testing.T) {
	start := func(subject string, setup *scenario.Setup) Start {
		p := place(0, "a")
		p.Setup = setup
		args, err := APIServerArguments("v1.37.1", subject, p, testFiles)
		if err != nil {
			t.Fatal(err)
		}
		return Start{Server: "a", Version: "v1.37.1", Setup: setup, Args: args}
	}
	usual, none := start(scenario.SubjectBuiltin, nil), start(scenario.SubjectNone, nil)
	reference, plain := start(scenario.SubjectReference, nil), start(scenario.SubjectReference, &scenario.Setup{Plain: true})
	kubeadm := start(scenario.SubjectBuiltin, &scenario.Setup{Flags: scenario.FlagsKubeadm})
	drained := start(scenario.SubjectBuiltin, &scenario.Setup{Goaway: scenario.On, ShutdownDelay: time.Second, EmulatedVersion: "1.36"})
	for _, c := range []struct {
		flag   string
		starts []Start
		want   string // "" if the flag is accepted
	}{
		{"goaway-chance=0.001", []Start{usual}, ""},
		{"goaway-chance=0.001", []Start{usual, drained}, "starts server a with --goaway-chance=0.02 (emulating 1.36, its request"},
		{"goaway-chance=0.02", []Start{usual, drained}, "starts server a with --goaway-chance=0.02"}, // it would be no difference any more
		{"goaway-chance=0.02", []Start{drained, drained}, ""},
		{"shutdown-delay-duration=70s", []Start{usual}, ""},
		{"shutdown-delay-duration=70s", []Start{drained}, "because the scenario depends on it"},
		{"emulated-version=1.36", []Start{usual, none}, ""},
		{"emulated-version=kube=1.36", []Start{usual}, ""},
		{"emulated-version=1.30", []Start{usual}, "kube-apiserver v1.37.1 emulates 1.34 to 1.37, and not 1.30"},
		{"emulated-version=1.35", []Start{drained, usual}, "--emulated-version=1.36"},
		{"endpoint-reconciler-type=none", []Start{usual}, ""},
		{"mixed-version-proxy-policy=upstream-1.37", []Start{plain, reference}, ""},
		{"mixed-version-proxy-policy=reference,Routing.Attempts=1", []Start{reference}, ""},
		{"mixed-version-proxy-policy=reference,Routing.Atempts=1", []Start{reference}, `did you mean "Routing.Attempts"?`},
		{"mixed-version-proxy-policy=upstream-1.37", []Start{usual}, "only servers of the subject reference"},
		{"peer-ca-file=/x", []Start{usual}, "certificates, authorities and headers"},
		{"peer-ca-file=/x", []Start{none}, "requires UnknownVersionInteroperabilityProxy feature"},
		{"peer-advertise-port=1", []Start{usual}, "address and port that the run gives it"},
		{"requestheader-uid-headers=X-Uid", []Start{usual}, "authorities and headers"},
		{"requestheader-uid-headers=X-Uid", []Start{kubeadm}, "without specifying the standard X-Remote-Uid header"},
		{"requestheader-uid-headers=X-Remote-Uid", []Start{kubeadm}, ""},
		{"service-account-issuer=https://a.example", []Start{usual}, ""},
		{"service-cluster-ip-range=10.0.0.0/16", []Start{usual}, ""},
		{"external-hostname=a.example", []Start{usual}, ""},
		{"permit-port-sharing", []Start{usual}, ""},
		{"anonymous-auth=false", []Start{usual}, ""},
		{"etcd-servers=https://elsewhere", []Start{usual}, "starts its own etcd"},
		{"etcd-prefix=/registry", []Start{usual}, ""},
		{"etcd-prefix=/k", []Start{usual}, "reads there what the servers store"},
		{"encryption-provider-config=/x", []Start{usual}, "reads there what the servers store"},
		{"authorization-mode=Node,RBAC", []Start{usual}, ""},
		{"authorization-mode=AlwaysAllow", []Start{usual}, "by RBAC"},
		{"authorization-config=/x", []Start{usual}, "by RBAC"},
		{"audit-log-path=-", []Start{usual}, "the audit log"},
		{"audit-log-format=json", []Start{usual}, ""},
		{"audit-log-format=legacy", []Start{usual}, "the audit log"},
		{"audit-log-maxage=7", []Start{usual}, ""},
		{"tls-sni-cert-key=a,b", []Start{usual}, "authorities and headers"},
		{"version", []Start{usual}, "prints a text and ends"},
		{"secure-port=1", []Start{usual}, "address and port that the run gives it"},
		{"runtime-config=api/ga=true", []Start{usual}, "give --runtime-config=api/ga=true"},
		{"feature-gates=WatchList=True, SizeBasedListCostEstimate=0", []Start{usual}, ""},
		{"feature-gates=kube:WatchList=t", []Start{usual, kubeadm}, ""},
		{"feature-gates=kube:WatchList=true,SizeBasedListCostEstimate=true", []Start{usual}, "do not mix use"},
		{"feature-gates=wardle:WatchList=true", []Start{usual}, "component not registered: wardle"},
		{"feature-gates=WatchList", []Start{usual}, `did you mean "WatchList=true"?`},
		{"feature-gates=WatchList=no", []Start{usual}, `did you mean "WatchList=false"?`},
		{"feature-gates=Invented=true", []Start{usual}, "unrecognized feature gate: Invented"},
		{"feature-gates=SidecarContainers=true", []Start{usual}, "unrecognized feature gate: SidecarContainers"},
		{"feature-gates=Invented=true", []Start{theirs(usual)}, ""},
		{"goway-chance=0.001", []Start{usual}, `unknown flag: --goway-chance: did you mean "goaway-chance"?`},
		{"goway-chance=0.001", []Start{theirs(usual)}, ""},
		{"goaway-chance=often", []Start{usual}, `invalid argument "often"`},
		{"feature-gates=RemoteRequestHeaderUID=false", []Start{usual, kubeadm}, ""}, // the run leaves its flag about UIDs out
		{"feature-gates=AllBeta=false,APIServerIdentity=true", []Start{usual}, `requires the "RemoteRequestHeaderUID" feature`},
		{"feature-gates=", []Start{usual}, ""},
		{"feature-gates=AllBeta=false", []Start{usual}, "depends on features that are disabled: [APIServerIdentity]"}, // the run sets the gate explicitly
		{"feature-gates=AllBeta=false,APIServerIdentity=true,RemoteRequestHeaderUID=true", []Start{usual, none}, ""},
		{"feature-gates=AllBeta=false", []Start{kubeadm}, "(with the flags of kubeadm) would have " + scenario.Gate + "=false instead of true"},
		{"feature-gates=AllAlpha=true", []Start{usual, kubeadm}, "depends on features that are disabled: [GenericWorkload]"},
		{"feature-gates=AllAlpha=true,GenericWorkload=true", []Start{usual, kubeadm}, ""},
		{"feature-gates=StorageVersionAPI=true", []Start{usual}, ""},
		{"feature-gates=" + scenario.Gate + "=1", []Start{usual}, ""},
		{"feature-gates=" + scenario.Gate + "=1", []Start{usual, none}, "would have " + scenario.Gate + "=true instead of false"},
		{"feature-gates=kube:" + scenario.Gate + "=False", []Start{usual}, "would have " + scenario.Gate + "=false instead of true"},
		{"feature-gates=" + scenario.Gate + "=false", []Start{kubeadm}, "with the flags of kubeadm)"},
		{"--v=4", []Start{usual}, "without hyphens"},
		{"=4", []Start{usual}, "want NAME=VALUE"},
		{"v=4\n--x=y", []Start{usual}, "in one line"},
	} {
		_, err := CheckOwn(history.OwnFlags{Flags: []string{c.flag}}, c.starts)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: error %v, want %q", c.flag, err, c.want)
		}
	}
	for list, want := range map[string]string{
		"api/ga=true,batch/v1=False, /v1/pods=0": "", "apps/v1,batch/v1=true": "", "": "", "api/ga=true,": "",
		"api/all=false,apps/v1": "conflicts with --enable-priority-and-fairness", "api/all=false,api/ga=true,flowcontrol.apiserver.k8s.io/v1=true": "",
		"api/all": "invalid value api/all=", "api/all=True": "invalid value api/all=True", "api/beta=1": "invalid value api/beta=1",
		"v1=true": "", "apps=false": "runtime-config invalid key apps", "apps/v1=yes": "invalid value of apps/v1: yes",
		"apps/v1/Deployments=false": "lowercase plural", "api/all=false": "with only api/all=false", "apps.example/v1": "unknown api groups apps.example/v1",
	} {
		_, err := CheckOwn(history.OwnFlags{RuntimeConfig: &list}, []Start{usual})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("--runtime-config %q: error %v, want %q", list, err, want)
		}
	}
}

// The load balancer and the controllers' health are asked for as the administrator, because servers
// may refuse anonymous requests.
func TestTheAdministratorAsksForHealth(t *testing.T) {
	c := &Cluster{config: Config{Files: Files{Keys: t.TempDir()}}}
	if err := c.makeCredentials([]Place{place(0, "a")}); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(c.config.Files.key("serving-a.crt"), c.config.Files.key("serving-a.key"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.VerifiedChains) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != users.AdminRequest.CommonName {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: c.pool("ca")}
	server.StartTLS()
	t.Cleanup(server.Close)
	transport, err := c.asAdmin()
	if err != nil {
		t.Fatal(err)
	}
	if err := lifecycle.Get(t.Context(), &http.Client{Transport: transport}, server.URL+"/healthz", io.Discard); err != nil {
		t.Error(err)
	}
}

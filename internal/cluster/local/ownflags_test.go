package local

import (
	"slices"
	"strings"
	"testing"

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
			[]string{"--feature-gates=" + scenario.Gate + "=false,WatchList=false", "--max-requests-inflight=7"}, ""},
		// kubeadm gives no gate.
		{history.OwnFlags{Flags: []string{"feature-gates=WatchList=false"}}, scenario.SubjectBuiltin, &scenario.Setup{Flags: scenario.FlagsKubeadm},
			[]string{"--feature-gates=WatchList=false"}, scenario.Gate},
	} {
		p := place(c.subject, 0, "a")
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
		if joined := strings.Join(args, " "); c.not != "" && strings.Contains(joined, c.not) || strings.Count(joined, "--feature-gates=") > 1 {
			t.Errorf("%+v: %q has %s, or a flag twice", c.own, args, c.not)
		}
	}
}

// Flags that the run needs for itself are refused by name, in every spelling.
func TestOwnFlagsThatWouldBreakTheRun(t *testing.T) {
	for flag, want := range map[string]string{
		"etcd-servers=https://elsewhere": "--etcd-servers itself",
		"secure-port=1":                  "--secure-port itself",
		"peer-ca-file=/x":                "--peer-ca-file itself",
		"peer-advertise-port=1":          "--peer-advertise-port itself",
		"emulated-version=1.36":          "--emulated-version itself",
		"audit-log-path=-":               "--audit-log-path itself",
		"tls-sni-cert-key=a,b":           "--tls-sni-cert-key itself",
		"runtime-config=api/ga=true":     "give --runtime-config api/ga=true",
		"feature-gates=WatchList=true," + scenario.Gate + "=no": "NAME=true or NAME=false",
		"feature-gates=" + scenario.Gate + "=false":             "the feature gate " + scenario.Gate + " itself",
		"feature-gates=AllBeta=false":                           "the feature gate AllBeta itself",
		"feature-gates=":                                        "NAME=true or NAME=false",
		"--v=4":                                                 "without hyphens",
		"v":                                                     "want NAME=VALUE",
		"=4":                                                    "want NAME=VALUE",
		"v=4\n--x=y":                                            "in one line",
	} {
		if err := CheckOwn(history.OwnFlags{Flags: []string{flag}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", flag, err, want)
		}
	}
	for _, list := range []string{"api/ga", "api/all=yes", "api/ga=true,", " api/ga=true"} {
		if err := CheckOwn(history.OwnFlags{RuntimeConfig: &list}); err == nil || !strings.Contains(err.Error(), "--runtime-config") {
			t.Errorf("--runtime-config %q: error %v", list, err)
		}
	}
	if err := CheckOwn(history.OwnFlags{Flags: []string{"v=4", "v=5"}}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a flag twice: error %v", err)
	}
	fine := history.OwnFlags{RuntimeConfig: new("api/ga=true,batch/v1=false"), Flags: []string{"v=4", "feature-gates=WatchList=true", "tracing-config-file=/a=b"}}
	if err := CheckOwn(fine); err != nil {
		t.Error(err)
	}
}

// Every flag that a run sets is reserved, for every subject.
func TestEveryFlagOfARunIsReserved(t *testing.T) {
	names := reserved()
	for _, subject := range scenario.Subjects {
		for _, setup := range []scenario.Setup{{}, {Advertise: scenario.AdvertisePort}, {Advertise: scenario.AdvertiseIP}, {EmulatedVersion: "1.36"}} {
			p := place(subject, 0, "a")
			p.Setup = &setup
			args, err := APIServerArguments("v1.37.1", subject, p, testFiles)
			if err != nil {
				t.Fatal(err)
			}
			for _, arg := range args {
				if name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "="); !slices.Contains(names, name) {
					t.Errorf("%s: --%s is not reserved", subject, name)
				}
			}
		}
	}
}

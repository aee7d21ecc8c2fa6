package scenario

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
)

func TestBlockedPaths(t *testing.T) {
	fromB := func(o Obstacle) []BlockedPath { return []BlockedPath{{"b", "a", o}, {"b", "c", o}} }
	toB := func(o Obstacle) []BlockedPath { return []BlockedPath{{"a", "b", o}, {"c", "b", o}} }
	untrusted := append([]BlockedPath{{"", "b", Distrusted}}, toB(Distrusted)...)
	for name, c := range map[string]struct {
		setups map[string]*Setup
		want   []BlockedPath
	}{
		"no setup":                     {nil, nil},
		"trusts a stranger":            {map[string]*Setup{"b": {PeerCA: TrustStranger}}, fromB(Distrusted)},
		"trusts nobody":                {map[string]*Setup{"b": {PeerCA: TrustMissing}}, nil}, // b asks no server, or does not run
		"an expired certificate":       {map[string]*Setup{"b": {Serving: CertificateExpired}}, untrusted},
		"a stranger's certificate":     {map[string]*Setup{"b": {Serving: CertificateStranger}}, untrusted},
		"another name's certificate":   {map[string]*Setup{"b": {Serving: CertificateOther}}, untrusted},
		"a new certificate":            {map[string]*Setup{"b": {Serving: CertificateRotated, FrontProxy: CertificateRotated}}, nil},
		"a front proxy not allowed":    {map[string]*Setup{"b": {FrontProxy: CertificateOther}}, fromB(NotAllowed)},
		"a stranger's front proxy":     {map[string]*Setup{"b": {FrontProxy: CertificateStranger}}, fromB(NotAllowed)},
		"a front proxy that expired":   {map[string]*Setup{"b": {FrontProxy: CertificateExpired}}, fromB(NotAllowed)},
		"an address without a server":  {map[string]*Setup{"b": {Advertise: AdvertiseWrong}}, toB(WrongAddress)},
		"an address to which no way":   {map[string]*Setup{"b": {Advertise: AdvertiseHost}}, toB(Unroutable)},
		"a fallback address":           {map[string]*Setup{"b": {Advertise: AdvertiseNothing}}, nil},
		"half an address":              {map[string]*Setup{"b": {Advertise: AdvertiseIP}}, nil},
		"kubeadm's flags":              {map[string]*Setup{"b": {Flags: FlagsKubeadm}}, nil},
		"switched off":                 {map[string]*Setup{"b": {Proxy: Off}}, toB(Unadvertised)},
		"two switched off":             {map[string]*Setup{"a": {Proxy: Off}, "b": {Proxy: Off}}, []BlockedPath{{"c", "b", Unadvertised}}},
		"the proxy of its release":     {map[string]*Setup{"b": {Plain: true}}, nil},
		"one name for two":             {map[string]*Setup{"b": {HostnameOf: "a"}}, nil},
		"a setup of another":           {map[string]*Setup{"c": {PeerCA: TrustStranger}}, []BlockedPath{{"c", "b", Distrusted}}},
		"distrust on top of a bad way": {map[string]*Setup{"a": {PeerCA: TrustStranger}, "b": {Advertise: AdvertiseWrong}}, toB(WrongAddress)},
	} {
		t.Run(name, func(t *testing.T) {
			state := &State{}
			for _, name := range []string{"a", "b", "c"} {
				state.servers = append(state.servers, serverState{Server: Server{Name: name, Setup: c.setups[name]}})
			}
			got := state.BlockedPaths("b")
			byEnds := func(ms []BlockedPath) map[[2]string]Obstacle {
				m := map[[2]string]Obstacle{}
				for _, x := range ms {
					m[[2]string{x.From, x.To}] = x.Obstacle
				}
				return m
			}
			if diff := cmp.Diff(byEnds(c.want), byEnds(got)); diff != "" || len(got) != len(c.want) {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Distrust is set only for obstacles that servers must detect themselves. A server that dials a
// wrong address can do nothing right or wrong.
func TestWhichObstaclesAreOfCertificates(t *testing.T) {
	want := map[Obstacle]history.Distrust{Distrusted: history.DistrustServing, NotAllowed: history.DistrustFrontProxy}
	for _, o := range []Obstacle{NoObstacle, Distrusted, NotAllowed, WrongAddress, Unroutable, Unadvertised} {
		if got := o.Distrust(); got != want[o] {
			t.Errorf("%q: %q, want %q", o, got, want[o])
		}
	}
}

func TestWhatIsWrongWithoutHinderingAnyWay(t *testing.T) {
	for name, c := range map[string]struct {
		setup *Setup
		want  string
	}{
		"nothing":                {nil, ""},
		"switched off":           {&Setup{Proxy: Off}, history.FaultProxyOff},
		"no peer authority":      {&Setup{PeerCA: TrustMissing}, history.FaultMisconfiguration},
		"another's name":         {&Setup{HostnameOf: "a"}, history.FaultMisconfiguration},
		"new certificates":       {&Setup{Serving: CertificateRotated}, ""},
		"the obstacle of a link": {&Setup{Serving: CertificateExpired}, ""},
		"kubeadm's flags":        {&Setup{Flags: FlagsKubeadm}, ""}, // with these flags everything should work
	} {
		if kind, what := c.setup.Wrong(); kind != c.want || (what == "") != (kind == "") {
			t.Errorf("%s: %q, %q; want kind %q", name, kind, what, c.want)
		}
	}
}

func TestOnlyWhatIsWrongMayBeRefused(t *testing.T) {
	for name, c := range map[string]struct {
		setup *Setup
		want  bool
	}{
		"nothing":                  {nil, false},
		"switched off":             {&Setup{Proxy: Off}, false},
		"new certificates":         {&Setup{Serving: CertificateRotated, FrontProxy: CertificateRotated}, false},
		"nothing advertised":       {&Setup{Advertise: AdvertiseNothing}, false},
		"kubeadm's flags":          {&Setup{Flags: FlagsKubeadm}, false},
		"an emulated version":      {&Setup{EmulatedVersion: "1.36"}, false},
		"no peer authority":        {&Setup{PeerCA: TrustMissing}, true},
		"another's name":           {&Setup{HostnameOf: "a"}, true},
		"an expired certificate":   {&Setup{Serving: CertificateExpired}, true},
		"a stranger's certificate": {&Setup{FrontProxy: CertificateStranger}, true},
		"half advertised":          {&Setup{Advertise: AdvertiseIP}, true},
		"switched off, and wrong":  {&Setup{Proxy: Off, PeerCA: TrustStranger}, true},
	} {
		if got := c.setup.Refusable(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestASetupIsChecked(t *testing.T) {
	servers := []Server{{Name: "a", Version: "v1.36.3"}, {Name: "b", Version: "v1.36.3"}}
	for name, c := range map[string]struct {
		setup Setup
		good  bool
	}{
		"everything that can be said": {Setup{
			Off, TrustStranger, CertificateExpired, CertificateOther, AdvertiseIP, FlagsKubeadm, "a", true, "1.36", "A=false", On, 2 * time.Second, 3 * time.Second,
		}, true},
		"nothing": {Setup{}, false},
		"no chance of a request to make a new connection": {Setup{Goaway: Off}, false},
		"a negative delay":            {Setup{ShutdownDelay: -time.Second}, false},
		"an endless wait":             {Setup{WatchTermination: time.Hour}, false},
		"a name without a server":     {Setup{HostnameOf: "z"}, false},
		"an unknown trust":            {Setup{PeerCA: "blind"}, false},
		"an unknown certificate":      {Setup{Serving: "forged"}, false},
		"an unknown front proxy":      {Setup{FrontProxy: "forged"}, false},
		"an unknown address":          {Setup{Advertise: "everywhere"}, false},
		"flags of an unknown":         {Setup{Flags: "kops"}, false},
		"a gate between on and off":   {Setup{FeatureGates: "A=half"}, false},
		"a switch between on and off": {Setup{Proxy: "half"}, false},
	} {
		plan := Plan{Servers: servers}
		plan.SetUp("b", c.setup)
		if err := plan.Validate(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
		if c.good && !plan.Setups() {
			t.Errorf("%s: the plan does not know that it has setups", name)
		}
	}
}

// The sentence is all that a report says about a setup.
func TestAStepTellsItsSetup(t *testing.T) {
	plan := Plan{}
	plan.SetUp("b", Setup{PeerCA: TrustStranger, HostnameOf: "a"})
	step := plan.Steps[0]
	if got, want := step.String(), "restart b, its peer authority: stranger, with the host name of a"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	encoded, err := json.Marshal(step)
	if err != nil {
		t.Fatal(err)
	}
	var decoded Step
	if err := json.Unmarshal(encoded, &decoded); err != nil || *decoded.Setup != *step.Setup {
		t.Errorf("it came back from %s as %+v, error %v", encoded, decoded.Setup, err)
	}
}

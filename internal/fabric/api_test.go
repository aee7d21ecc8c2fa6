package fabric

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

func TestToxiproxyClientSeesLinksAndFaults(t *testing.T) {
	b := newTestFabric(t)
	client := toxiproxy.NewClient(b.API().String())
	cut := b.inject(fault.Fault{Kind: fault.Cut, From: "a", To: "b"})
	slow := b.inject(fault.Fault{Kind: fault.Latency, From: "b", To: "a", Direction: fault.Down, Latency: 200e6, Jitter: 50e6})

	proxies, err := client.Proxies()
	if err != nil {
		t.Fatal(err)
	}
	if len(proxies) != len(b.Links()) {
		t.Errorf("%d proxies, want %d", len(proxies), len(b.Links()))
	}
	for name, p := range proxies {
		if want := name != "a-to-b"; p.Enabled != want {
			t.Errorf("%s: enabled is %v, want %v", name, p.Enabled, want)
		}
	}
	toxics := proxies["b-to-a"].ActiveToxics
	if len(toxics) != 1 {
		t.Fatalf("toxics of b-to-a: %v, want one", toxics)
	}
	got := toxics[0]
	if got.Type != "latency" || got.Stream != "downstream" || got.Toxicity != 1 ||
		got.Attributes["latency"] != 200.0 || got.Attributes["jitter"] != 50.0 {
		t.Errorf("toxic %+v", got)
	}
	b.heal(cut)
	b.heal(slow)
	p, err := client.Proxy("a-to-b")
	if err != nil || !p.Enabled {
		t.Errorf("after the heal: %+v and %v", p, err)
	}
}

func TestToxiproxyClientChangesLinks(t *testing.T) {
	b := newTestFabric(t)
	client := toxiproxy.NewClient(b.API().String())
	p, err := client.Proxy("a-to-b")
	if err != nil {
		t.Fatal(err)
	}
	other, c := b.talking("c", "b"), b.talking("a", "b")

	if err := p.Disable(); err != nil {
		t.Fatal(err)
	}
	wantReset(t, c)
	b.wantTurnedAway("a", "b")
	b.talk(other)
	if err := p.Enable(); err != nil {
		t.Fatal(err)
	}

	c = b.dial("a", "b")
	b.talk(c)
	if _, err := p.AddToxic("", "reset_peer", "downstream", 1, toxiproxy.Attributes{"timeout": 0}); err != nil {
		t.Fatal(err)
	}
	send(t, c, "doomed")
	wantReset(t, c)
	fresh := b.dial("a", "b")
	send(t, fresh, "doomed")
	wantReset(t, fresh)
	if err := client.ResetState(); err != nil {
		t.Fatal(err)
	}
	b.talking("a", "b")

	// After a change of the upstream, new connections go to the new address.
	p.Upstream = serveTCP(t, echo).String()
	if err := p.Save(); err != nil {
		t.Fatal(err)
	}
	b.talking("a", "b")
	if err := p.Delete(); err != nil {
		t.Fatal(err)
	}
	b.wantTurnedAway("a", "b")
}

func TestHealSaysWhenSomebodyElseWasFaster(t *testing.T) {
	b := newTestFabric(t)
	a := b.inject(fault.Fault{Kind: fault.Timeout, From: "a", To: "b"})
	if err := toxiproxy.NewClient(b.API().String()).ResetState(); err != nil {
		t.Fatal(err)
	}
	record, err := a.Heal(t.Context())
	if err == nil || !strings.Contains(err.Error(), "something else has removed it") || record.Kind != "timeout" {
		t.Errorf("record %+v and %v", record, err)
	}
	b.talking("a", "b")
	again, _ := a.Heal(t.Context())
	wantEvidence(t, again, history.Evidence{})
}

// A cut that a user ends through toxiproxy's API stays ended: toxiproxy's state counts, and the
// later heal has nothing to do.
func TestCutOpenedByHand(t *testing.T) {
	b := newTestFabric(t)
	a := b.inject(fault.Fault{Kind: fault.Cut, From: "a", To: "b"})
	if err := toxiproxy.NewClient(b.API().String()).ResetState(); err != nil {
		t.Fatal(err)
	}
	c := b.talking("a", "b")
	if _, err := a.Heal(t.Context()); err == nil || !strings.Contains(err.Error(), "something else has enabled it") {
		t.Errorf("heal: %v", err)
	}
	b.talk(c)
}

func TestLog(t *testing.T) {
	var log bytes.Buffer
	f, err := New(Config{Log: &log, Destinations: []Destination{{"a", netip.MustParseAddrPort("127.0.1.1:0"), serveTCP(t, echo)}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(&log)
	n := 0
	for ; ; n++ {
		var line map[string]any
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if line["message"] == "" || line["time"] == "" {
			t.Errorf("line %v", line)
		}
	}
	if n == 0 {
		t.Error("toxiproxy has logged nothing")
	}
}

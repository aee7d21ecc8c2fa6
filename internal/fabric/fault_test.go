package fabric

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"

	"github.com/skewproof/skewproof/internal/fault"
)

func TestInjectUnknownLink(t *testing.T) {
	b := newTestFabric(t)
	for _, test := range []struct{ name, from, to, want string }{
		{"source", "clinet", "a", `unknown source "clinet": did you mean "client"?`},
		{"destination", "a", "etdc", `unknown destination "etdc": did you mean "etcd"?`},
		{"far off", "a", "nowhere", "use one of a, b, c, etcd"},
		{"client to etcd", fault.Client, fault.Etcd, "no link"},
		{"etcd dials nobody", fault.Etcd, "a", `unknown source "etcd"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := fault.Fault{Kind: fault.Cut, From: test.from, To: test.to}
			if _, err := b.Inject(t.Context(), f); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v does not say %q", err, test.want)
			}
		})
	}
	if _, err := b.Inject(t.Context(), fault.Fault{Kind: fault.Cut, From: fault.Any, To: "a"}); err == nil || !strings.Contains(err.Error(), "a record names one link") {
		t.Errorf("inject of %q: %v", fault.Any, err)
	}
}

// FuzzFault: every fault in a file is either rejected, or accepted by toxiproxy and unchanged after
// it is written and read again.
func FuzzFault(f *testing.F) {
	for _, each := range valid("a", "b") {
		for _, d := range []fault.Direction{"", fault.Both, fault.Up, fault.Down, "left"} {
			each.Direction = d
			seed, err := json.Marshal(each)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(seed)
		}
	}
	f.Add([]byte(`{"kind":"latency","from":"a","to":"b","latency":9223372036854775807}`))
	f.Add([]byte(`{"kind":"slicer","from":"a","to":"b","size":1,"variation":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var injected fault.Fault
		if json.Unmarshal(data, &injected) != nil {
			return
		}
		sentence := injected.String()
		if injected.Validate() != nil {
			return
		}
		written, err := json.Marshal(injected)
		if err != nil {
			t.Fatal(err)
		}
		var again fault.Fault
		if err := json.Unmarshal(written, &again); err != nil || again.String() != sentence {
			t.Fatalf("%q reads %q after it was written: %v", sentence, again, err)
		}
		if injected.Kind.Effect().Disables {
			return
		}
		toxic := injected.Toxic()
		body, err := toxicJSON("x", toxic.Type, streamsOf(injected)[0], toxic.Attributes)
		if err != nil {
			t.Fatal(err)
		}
		proxy := toxiproxy.NewProxy(newServer(&logWriter{}), "a-to-b", anyPort, "127.0.0.1:1")
		if _, err := proxy.Toxics.AddToxicJson(body); err != nil {
			t.Fatalf("toxiproxy refuses %s: %v", sentence, err)
		}
	})
}

package local

import (
	"net"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Sidecars find the servers at the addresses that all clients use, with or without a sidecar.
func TestEndpointSliceHasWhatEverybodyDials(t *testing.T) {
	for _, subject := range scenario.Subjects {
		places := Places(subject, []history.Server{{Name: "a"}, {Name: "b"}})
		slice := endpointSlice(places)
		var got, want []string
		for _, e := range slice.Endpoints {
			got = append(got, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port))))
		}
		for _, p := range places {
			want = append(want, p.Advertised.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: addresses (-want +got):\n%s", subject, diff)
		}
	}
}

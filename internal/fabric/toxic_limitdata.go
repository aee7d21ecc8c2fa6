package fabric

import (
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/skewproof/skewproof/internal/fault"
)

func init() { toxics.Register(fault.LimitDataToxic, new(limitDataToxic)) }

// limitDataToxic takes the place of toxiproxy's own in the registry, which stops reading when the limit is reached and so
// leaves the goroutines in front of it waiting for ever to hand over the next chunk.
type limitDataToxic struct{ toxics.LimitDataToxic }

// Pipe implements toxics.Toxic.
func (t *limitDataToxic) Pipe(stub *toxics.ToxicStub) {
	t.LimitDataToxic.Pipe(stub)
	if stub.Closed() {
		drain(stub.Input)
	}
}

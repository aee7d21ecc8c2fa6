package fault

import (
	"fmt"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// LimitData closes a connection (FIN at both ends) once a stream of it has carried Bytes; with both directions each stream
// has the limit to itself. On connections that are open, only what flows after the injection counts.
const LimitData Kind = "limit-data"

var limitData = kind{
	takes:    []string{"bytes"},
	check:    func(f Fault) error { return required("bytes", f.Bytes) },
	sentence: func(f Fault) string { return fmt.Sprintf("%d B", f.Bytes) },
	toxic: func(f Fault) (string, toxics.Toxic) {
		return limitDataType, &limitDataToxic{toxics.LimitDataToxic{Bytes: f.Bytes}}
	},
	breaks: true,
	bites:  bitesLife,
}

const limitDataType = "limit_data"

func init() { toxics.Register(limitDataType, new(limitDataToxic)) }

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

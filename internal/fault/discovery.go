package fault

import "fmt"

// DiscoveryFailure says how a peer's fetch of a discovery document fails.
type DiscoveryFailure string

// These are the ways in which a fetch can fail.
const (
	// ServerError is the zero value: the answer is 500.
	ServerError DiscoveryFailure = ""
	// BreaksOff is a 200 with headers whose stream is reset before the first byte of the body.
	BreaksOff DiscoveryFailure = "breaks-off"
	// CutShort is like BreaksOff, but the reset comes after the first half of the body.
	CutShort DiscoveryFailure = "cut-short"
)

// DiscoveryFailures lists all ways.
var DiscoveryFailures = []DiscoveryFailure{ServerError, BreaksOff, CutShort}

// Detail describes the failure of fetches of the document at a path, for the record of the fault.
func (f DiscoveryFailure) Detail(path string) string {
	does := "fails"
	switch f {
	case BreaksOff:
		does = "breaks off"
	case CutShort:
		does = "is cut short"
	}
	return fmt.Sprintf("GET %s %s for peers", path, does)
}

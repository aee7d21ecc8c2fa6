package spoil

import "fmt"

// Manner is how the fetch of a document fails.
type Manner string

// The manners.
const (
	// Fails is the zero value: the answer is 500.
	Fails Manner = ""
	// BreaksOff is an answer of 200 of which the headers come, and then, before the first byte of the body, a reset.
	BreaksOff Manner = "breaks-off"
	// CutShort is the same after the first half of the body.
	CutShort Manner = "cut-short"
)

// Manners are all there are.
var Manners = []Manner{Fails, BreaksOff, CutShort}

// Detail says what becomes of fetches of the document at a path, for the record of the fault.
func (m Manner) Detail(path string) string {
	does := "fails"
	switch m {
	case BreaksOff:
		does = "breaks off"
	case CutShort:
		does = "is cut short"
	}
	return fmt.Sprintf("GET %s %s for peers", path, does)
}

// comes is how much of a body comes before the reset.
func (m Manner) comes(body []byte) []byte {
	if m == CutShort {
		return body[:len(body)/2]
	}
	return nil
}

package fieldskew

// Gate is a feature gate whose default differs between the two releases.
type Gate struct {
	Name   string `json:"name"`
	Locked bool   `json:"locked,omitempty"` // it cannot be switched off at the newer release
	// Dependents are gates that cannot be on without it.
	Dependents []string `json:"dependents,omitempty"`
}

package history

// Crowd is one caller that kept many watches open through one server, beside the load. Its requests
// are not operations of the history, because nothing is promised to this caller: other callers must
// not notice it.
type Crowd struct {
	Server string `json:"server"`
	Start  Time   `json:"start"`
	End    Time   `json:"end"`
	// Watches is the number of watches. Failed counts those that the server never answered; Problem
	// says why, for the last.
	Watches int    `json:"watches"`
	Failed  int    `json:"failed,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Resources are the paths that the caller watched. The asked server serves none of them.
	Resources []string `json:"resources,omitempty"`
}

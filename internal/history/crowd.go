package history

// Crowd is one caller that sent many requests at a time through one server, beside the load. Its
// requests are not operations of the history, because nothing is promised to this caller: other
// callers must not notice it.
type Crowd struct {
	Server string `json:"server"`
	// Kind says what the caller sent, such as "watches".
	Kind  string `json:"kind"`
	Start Time   `json:"start"`
	End   Time   `json:"end"`
	// Connections is the number of connections over which the caller sent its requests, 50 or 80 on
	// each. Failed counts those on which it could not send any; Problem says why, for the last.
	Connections int    `json:"connections"`
	Failed      int    `json:"failed,omitempty"`
	Problem     string `json:"problem,omitempty"`
	// Resources are the paths that the caller asked for. The asked server serves none of them.
	Resources []string `json:"resources,omitempty"`
}

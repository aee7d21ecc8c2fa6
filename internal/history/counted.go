package history

// Counted is what a server had counted when the run read its metrics. A server counts from the
// start of its process. It also counts requests that are no operations of the history.
type Counted struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	At          Time   `json:"at"` // before the metrics were read
	// Rerouted are the samples of the metric apiserver_rerouted_request_total, in any order. A server
	// that has passed on no requests has none.
	Rerouted []Rerouted `json:"rerouted,omitempty"`
}

// Rerouted is how many requests for one resource a server had passed on, with one status of the
// answer. Fetches of discovery documents count too; they have no resource.
type Rerouted struct {
	Code string `json:"code"` // as the server wrote it
	GVR  GVR    `json:"gvr,omitzero"`
	// Together is true if the server does not count by resource, as before Kubernetes 1.36. GVR is
	// then zero, and Count is of all resources.
	Together bool `json:"together,omitempty"`
	Count    int  `json:"count"`
}

package history

// Object is a change of an API object in etcd: the ground truth of what exists, whatever servers
// answer. Of the object's contents it has what controllers act on.
type Object struct {
	// Revision is etcd's. It orders the changes of a run; changes of one transaction share it.
	Revision int64 `json:"revision"`
	// At is when the run saw the change: at that moment or later than it happened.
	At  Time   `json:"at"`
	Key string `json:"key"` // in etcd, such as "/registry/configmaps/default/x"
	// Gone is true if the change removed the object. The other fields say then what was removed.
	Gone       bool   `json:"gone,omitempty"`
	APIVersion string `json:"apiVersion"` // in which etcd keeps it, such as "apps/v1"
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"` // empty if the resource has no namespaces
	Name       string `json:"name"`
	UID        string `json:"uid"`
	// Deleting is true if the object has a deletion timestamp: it goes once Finalizers is empty.
	Deleting   bool     `json:"deleting,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"` // for a namespace, also those of its spec
	Owners     []Owner  `json:"owners,omitempty"`
	// Conditions of a Namespace are the types of those that are true, such as
	// "NamespaceContentRemaining". Others have none here.
	Conditions []string `json:"conditions,omitempty"`
	// Counts of a ResourceQuota are its limits of the number of objects of a resource, sorted by
	// resource. Others have none here.
	Counts []Count `json:"counts,omitempty"`
	// Fields are the paths of all fields with a value, such as "spec.containers[0].image", without
	// what servers write into metadata. They are empty if the type was unknown to the program that
	// recorded it, and in histories of older runs.
	Fields []string `json:"fields,omitempty"`
}

// Owner is an owner reference. An owner is identified by its UID.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Blocks     bool   `json:"blocks,omitempty"` // blockOwnerDeletion
}

// Count is how a ResourceQuota limits the number of objects of one resource in its namespace
// (count/RESOURCE.GROUP).
type Count struct {
	Group    string `json:"group,omitempty"` // "" is the core group
	Resource string `json:"resource"`
	// Used is how many there are as the status of the quota says. It is nil if the status does not
	// say it: servers refuse to create such objects then.
	Used *int64 `json:"used,omitempty"`
}

// String is the resource as a quota names it: "podcertificaterequests.certificates.k8s.io".
func (c Count) String() string {
	if c.Group == "" {
		return c.Resource
	}
	return c.Resource + "." + c.Group
}

// Request is a server's own record, from its audit log, of a request that the load did not send: of
// a controller, of kubectl, or of a step of the run. A request that a server passed on has a record
// at each server, with the same ID. Reads that succeeded, and what servers send to themselves, are
// left out.
type Request struct {
	ID          string `json:"id"` // Audit-ID
	Server      string `json:"server"`
	Start       Time   `json:"start"`
	End         Time   `json:"end"` // equal to Start if the log does not say
	Status      int    `json:"status,omitempty"`
	User        string `json:"user,omitempty"`
	Agent       string `json:"agent,omitempty"` // User-Agent
	Verb        string `json:"verb"`            // of the API: "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"
	GVR         GVR    `json:"gvr,omitzero"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	Path        string `json:"path"` // path and query
	// Rerouted is true if the request came from a peer.
	Rerouted bool `json:"rerouted,omitempty"`
	// Own is true if a step of the run sent it: what such a request deletes was meant to go.
	Own bool `json:"own,omitempty"`
}

package history

// Object is a change of an API object in etcd. It is ground truth: it says which objects exist,
// whatever the servers answer. It has only the contents that controllers use.
type Object struct {
	// Revision is the revision in etcd. It orders the changes of a run; changes of one transaction
	// share it.
	Revision int64 `json:"revision"`
	// At is when the run saw the change. The change happened at that time or earlier.
	At  Time   `json:"at"`
	Key string `json:"key"` // in etcd, such as "/registry/configmaps/default/x"
	// Gone is true if the change removed the object. Then the other fields describe the removed
	// object.
	Gone       bool   `json:"gone,omitempty"`
	APIVersion string `json:"apiVersion"` // in which etcd stores it, such as "apps/v1"
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"` // empty if the resource has no namespaces
	Name       string `json:"name"`
	UID        string `json:"uid"`
	// Deleting is true if the object has a deletion timestamp. It is removed once Finalizers is
	// empty.
	Deleting   bool     `json:"deleting,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"` // for a namespace, also those of its spec
	Owners     []Owner  `json:"owners,omitempty"`
	// Conditions are the types of the true conditions of a Namespace, such as
	// "NamespaceContentRemaining", and of a StorageVersionMigration, such as "Succeeded". They are
	// empty for other objects.
	Conditions []string `json:"conditions,omitempty"`
	// Counts of a ResourceQuota are its limits of the number of objects of a resource, sorted by
	// resource. Others have none here.
	Counts []Count `json:"counts,omitempty"`
	// Holder is the identity of the holder of a Lease: kube-controller-manager's is the name of its
	// host, "_" and a UUID. It is empty if nobody holds the Lease, and for other objects.
	Holder string `json:"holder,omitempty"`
	// Migrates is the resource that a StorageVersionMigration is about, without a version. It is nil
	// for other objects.
	Migrates *GVR `json:"migrates,omitempty"`
	// Generation is metadata.generation: servers raise it with each change of the specification. It
	// is 0 for kinds without one, and in histories of older runs.
	Generation int64 `json:"generation,omitempty"`
	// Replicas is how many Pods a ReplicaSet, a ReplicationController or a StatefulSet wants, or a
	// Job wants at a time. It is nil for other objects.
	Replicas *int64 `json:"replicas,omitempty"`
	// Ended is true for a Pod that has succeeded or failed.
	Ended bool `json:"ended,omitempty"`
	// Fields are the paths of all fields with a value, such as "spec.containers[0].image", except
	// the metadata fields that servers write. They are empty if the program that recorded the
	// object did not know its type, and in histories of older runs.
	Fields []string `json:"fields,omitempty"`
}

// CandidatePrefix begins the name of the host of controllers with leader election, before the name
// of the server whose clients they are: "kcm-b". The identity in the Lease begins with it.
const CandidatePrefix = "kcm-"

// Owner is an owner reference. An owner is identified by its UID.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Blocks     bool   `json:"blocks,omitempty"`   // blockOwnerDeletion
	Controls   bool   `json:"controls,omitempty"` // controller: the owner has produced the object
}

// Count is how a ResourceQuota limits the number of objects of one resource in its namespace
// (count/RESOURCE.GROUP).
type Count struct {
	Group    string `json:"group,omitempty"` // "" is the core group
	Resource string `json:"resource"`
	// Used is the number of objects according to the status of the quota. It is nil if the status
	// does not contain it. Then servers refuse to create such objects.
	Used *int64 `json:"used,omitempty"`
}

// String is the resource as a quota names it: "podcertificaterequests.certificates.k8s.io".
func (c Count) String() string {
	if c.Group == "" {
		return c.Resource
	}
	return c.Resource + "." + c.Group
}

// Written is a write of a step that names fields by which versions differ. The servers' records of
// it are Requests with the same ID.
type Written struct {
	ID string `json:"id"` // Audit-ID
	// Lost are the paths of the fields with a value that the request names and the answer lacks, in
	// the form of Object.Fields. It is empty if a server refused the write.
	Lost []string `json:"lost,omitempty"`
}

// Request is a server's own record, from its audit log, of a request that the load did not send.
// Its sender is a controller, kubectl, or a step of the run. A forwarded request has a record at
// each server, with the same ID. Successful reads, and requests of servers to themselves, are left
// out. Controllers' successful reads of merged discovery (/api and /apis) are kept, because they
// tell controllers which kinds exist. Histories of older runs do not have them.
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
	// Own is true if a step of the run sent the request: the step deletes objects on purpose.
	Own bool `json:"own,omitempty"`
}

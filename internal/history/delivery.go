package history

// Delivery is what an informer of the run received: the list of all objects of a resource, an event
// of its watch, or an error. An informer sends its requests for one resource to one address. When a
// connection breaks, it continues from its last resource version (k8s.io/client-go, tools/cache,
// Reflector).
type Delivery struct {
	// Informer names the informer. The name is unique in a run.
	Informer string `json:"informer"`
	// Index counts the deliveries of the informer from 1.
	Index int `json:"index"`
	// Server is the server to whose address the informer sends its requests. It is empty for the
	// load balancer.
	Server string       `json:"server,omitempty"`
	GVR    GVR          `json:"gvr"`
	At     Time         `json:"at"`
	Kind   DeliveryKind `json:"kind"`
	// ResourceVersion is the resource version of the list, the bookmark or the object of the event.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Objects are the objects of the list, or the one object of the event.
	Objects []Version `json:"objects,omitempty"`
	// Status and Message say why a request failed. Status is 0 if there was no answer.
	Status  int    `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
}

// DeliveryKind says what an informer received.
type DeliveryKind string

// The kinds of deliveries.
const (
	DeliveryStarted  DeliveryKind = "started"  // the informer starts to send requests
	DeliveryListed   DeliveryKind = "listed"   // all objects as of ResourceVersion; they replace the informer's objects
	DeliveryAdded    DeliveryKind = "added"    // an event of the watch
	DeliveryModified DeliveryKind = "modified" // likewise
	DeliveryDeleted  DeliveryKind = "deleted"  // likewise; ResourceVersion is that of the deletion
	DeliveryBookmark DeliveryKind = "bookmark" // all events up to ResourceVersion were delivered
	DeliveryFailed   DeliveryKind = "failed"   // a list or a watch was refused, or got no answer
	DeliveryEnded    DeliveryKind = "ended"    // the run has ended the informer
)

// Version is one version of an object, as an informer received it.
type Version struct {
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
}

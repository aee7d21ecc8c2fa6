package answer

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/internal/history"
)

// noResourceMessage starts the message of a 404 that is not about an object. A request that no handler is installed for
// gets it without details; an error relayed by way of a client repeats it with the details of the request
// (k8s.io/apimachinery/pkg/api/errors, NewGenericServerResponse).
const noResourceMessage = "the server could not find the requested resource"

// ClassifyMissing says what a 404 was about. Only a Status that names a thing is about an object: the code that wrote it
// (errors.NewNotFound) had found the resource, looked for the object or its namespace, and missed it. Any other answer,
// text of the mux and empty bodies included, means that nothing here serves the resource. status is nil if the body was
// no Status.
//
// One answer cannot be told apart by its body: an unknown subresource of a custom resource is reported as if its object
// was missing (k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, ServeHTTP). It counts as
// MissingObject, so that a false 404 is never claimed without proof.
func ClassifyMissing(status *metav1.Status) history.Missing {
	switch {
	case status == nil,
		status.Reason != metav1.StatusReasonNotFound,
		status.Details == nil,
		status.Details.Name == "" && status.Details.Kind == "",
		strings.HasPrefix(status.Message, noResourceMessage):
		return history.MissingResource
	default:
		return history.MissingObject
	}
}

package sim

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/internal/workload"
)

// authorize is the error with which a user is refused what a request asks for; nil if the user may have it. Of the callers of the load one may only
// read, as in the real one. It is decided where a request is served: by the user that this server takes it to come from.
func authorize(user string, info *apirequest.RequestInfo) *apierrors.StatusError {
	if user != workload.Reader || info.Verb == "get" || info.Verb == "list" || info.Verb == "watch" {
		return nil
	}
	why := fmt.Sprintf("User %q cannot %s resource %q in API group %q at the cluster scope", user, info.Verb, info.Resource, info.APIGroup)
	return apierrors.NewForbidden(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name, errors.New(why))
}

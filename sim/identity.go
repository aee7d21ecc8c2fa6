package sim

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
)

// These are the attributes of every user of the simulator, in the form of its user.Info and of
// history.Hop.
var groups = []string{"system:authenticated"}

const (
	ownGroups  = "system:authenticated"
	ownUID     = "7"
	extraField = "Scopes"
	ownExtra   = "everything"
)

func newUser(name string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: name, UID: ownUID, Groups: groups, Extra: map[string][]string{extraField: {ownExtra}}}
}

// attributes returns the attributes of the user for whom a peer has sent the request, in the form
// of history.Hop. The groups are never empty there.
func attributes(h http.Header) (all, uid, extra string) {
	all = "none"
	if told := h["X-Remote-Group"]; slices.Equal(told, groups) {
		all = ownGroups
	} else if len(told) > 0 {
		all = strings.Join(slices.Sorted(slices.Values(told)), ",")
	}
	return all, h.Get("X-Remote-Uid"), h.Get("X-Remote-Extra-" + extraField)
}

// unauthenticated is the text in an audit log for a request whose sender was not authenticated
// (k8s.io/apiserver, pkg/endpoints/filters/authn_audit.go).
const unauthenticated = "Authentication failed, attempted: x509"

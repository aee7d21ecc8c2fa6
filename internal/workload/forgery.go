package workload

import (
	"net/http"
	"slices"
)

// hostileShare is the share, in percent, of hostile traffic with forged headers.
const hostileShare = 33

// Forgery is a set of headers by which a peer says that it has forwarded a request, and for which
// user. A client sends them in their plain form, once each: whatever a server does with them, they
// do it no harm.
type Forgery struct {
	Name   string
	Header http.Header
}

// ForgedHop is the forgery that schedules of the simulator choose: a peer has forwarded the
// request.
const ForgedHop = "hop"

// Forgeries are all forgeries. Impersonate-User is not among them, because a user may be allowed to
// use it. X-Forwarded-For is not among them either, because the audit logs show by it which server
// has forwarded a request.
var Forgeries = []Forgery{
	{ForgedHop, http.Header{"X-Kubernetes-Peer-Proxied": {"true"}}},
	{"hop-of-1.28", http.Header{"X-Kubernetes-Apiserver-Rerouted": {"true"}}},
	{"identity", http.Header{
		"X-Remote-User": {"another-user"}, "X-Remote-Group": {"another-group"}, "X-Remote-Uid": {"0"}, "X-Remote-Extra-Scopes": {"others"},
	}},
	{"everything", http.Header{
		"X-Kubernetes-Peer-Proxied": {"true"}, "X-Kubernetes-Apiserver-Rerouted": {"true"}, "X-Skewproof-Refused": {"true"},
		"X-Remote-User": {"another-user"}, "X-Remote-Group": {"another-group"},
	}},
}

// ForgedHeader returns the headers of the request's forgery; nil if it has none. The caller must
// not change them.
func (r *Request) ForgedHeader() http.Header {
	if i := slices.IndexFunc(Forgeries, func(f Forgery) bool { return f.Name == r.Forged }); i >= 0 {
		return Forgeries[i].Header
	}
	return nil
}

// ForgeryNames lists the names of all forgeries.
func ForgeryNames() (names []string) {
	for _, f := range Forgeries {
		names = append(names, f.Name)
	}
	return names
}

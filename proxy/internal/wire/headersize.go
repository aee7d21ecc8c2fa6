package wire

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxHeaderList is the largest size of a request's headers that a kube-apiserver is sure to take, in bytes (k8s.io/apiserver,
	// secure_serving.go).
	maxHeaderList = http.DefaultMaxHeaderBytes
	// headerOverhead is added for each header to the size of its name and value (RFC 9113, 6.5.2).
	headerOverhead = 32
	// addedHeaders is room for the headers that a transport adds.
	addedHeaders = 1 << 10
)

// CheckHeaderSize returns a Status of 431 for a request whose target and headers, names of trailers included, are larger than a
// kube-apiserver takes by HTTP/2. By HTTP/1.1 a client may send more, because short headers count for less there. Sending it on
// would end in an error that looks like the other server's fault, and may break a connection that many requests share
// (golang.org/x/net/http2, Framer.readMetaFrame).
func CheckHeaderSize(target *url.URL, headers ...http.Header) error {
	size := addedHeaders + len(target.RequestURI())
	for _, h := range headers {
		for name, values := range h { // in any order
			if len(values) == 0 { // of a trailer, which has none yet: its name is in a list
				size += len(name) + 1
			}
			for _, v := range values {
				size += headerOverhead + len(name) + len(v)
				if strings.EqualFold(name, "Cookie") { // a transport makes a header of each (RFC 9113, 8.2.3)
					size += strings.Count(v, ";") * (headerOverhead + len(name))
				}
			}
		}
	}
	if size <= maxHeaderList {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestHeaderFieldsTooLarge,
		Message: fmt.Sprintf("the request's headers are too large: limit is %d bytes, of which each takes %d beside its name and its value", maxHeaderList, headerOverhead),
	}}
}

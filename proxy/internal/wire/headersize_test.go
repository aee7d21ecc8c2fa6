package wire

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A transport lists the names of trailers in a header, so these names count.
func TestNamesOfTrailersAreHeaders(t *testing.T) {
	target := &url.URL{Path: "/apis/x/v1/gadgets"}
	headers := http.Header{"A": strings.Split(strings.Repeat("x", 30000), "")}
	if err := CheckHeaderSize(target, headers, nil); err != nil {
		t.Error(err)
	}
	if err := CheckHeaderSize(target, headers, http.Header{strings.Repeat("B", 40<<10): nil}); err == nil {
		t.Error("not refused with names of trailers that are too long")
	}
}

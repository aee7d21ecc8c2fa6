package proxy

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// statusLog records every status of an answer.
type statusLog struct {
	*httptest.ResponseRecorder
	all []int
}

func (c *statusLog) WriteHeader(code int) { c.all = append(c.all, code) }

// Of an answer without the header of a refusal, each status is written once. An informational
// status is not the last one, except 101.
func TestAnAnswerWithoutRefusalHasOneStatus(t *testing.T) {
	for name, c := range map[string]struct {
		written []int
		want    []int
	}{
		"no status":        {nil, []int{200}},
		"a success":        {[]int{200}, []int{200}},
		"an error":         {[]int{404}, []int{404}},
		"early hints":      {[]int{103, 201}, []int{103, 201}},
		"early hints only": {[]int{103}, []int{103, 200}},
		"an upgrade":       {[]int{http.StatusSwitchingProtocols}, []int{101}},
	} {
		below := &statusLog{ResponseRecorder: httptest.NewRecorder()}
		w := &withoutRefusal{ResponseWriter: below}
		for _, code := range c.written {
			w.Header().Set(RefusedHeader, "true")
			w.WriteHeader(code)
			if w.Header().Get(RefusedHeader) != "" {
				t.Errorf("%s: the header of a refusal is still there at status %d", name, code)
			}
		}
		if _, err := w.Write([]byte("x")); err != nil || !slices.Equal(below.all, c.want) {
			t.Errorf("%s: statuses %v (%v), want %v", name, below.all, err, c.want)
		}
	}
}

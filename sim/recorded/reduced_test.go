package recorded

import (
	"bytes"
	"testing"
)

// A release with one API switched off equals the release in everything else.
func TestAReleaseWithoutAnAPI(t *testing.T) {
	whole, err := Get("v1.30.14")
	if err != nil {
		t.Fatal(err)
	}
	less, err := Get("v1.30.14+without.batch.v1")
	if err != nil {
		t.Fatal(err)
	}
	var gone []string
	for _, r := range whole.Document.Resources {
		if less.Find(r.GVR) == nil {
			gone = append(gone, r.GVR.String())
		}
	}
	if len(gone) != 2 || gone[0] != "batch/v1/cronjobs" && gone[0] != "batch/v1/jobs" || len(less.Document.Resources)+2 != len(whole.Document.Resources) {
		t.Errorf("without batch/v1 there is no %v", gone)
	}
	if !bytes.Equal(less.Bodies[0], whole.Bodies[0]) {
		t.Error("the core group has changed")
	}
	again, err := Get("v1.30.14+without.batch.v1")
	if err != nil || again != less {
		t.Errorf("it is made again each time, error %v", err)
	}
	for _, name := range []string{"v1.2.3+without.batch.v1", "v1.30.14+without.batch", "v1.30.14+without.batch.v1.and.batch.v9"} {
		if _, err := Get(name); err == nil {
			t.Errorf("there is a release %s", name)
		}
	}
}

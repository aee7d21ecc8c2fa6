package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

func TestWhatClientsLogGoesToAFile(t *testing.T) {
	d := fresh(t)
	log := filepath.Join(d.logs(), "client-go.log")
	for said, want := range map[string]bool{"": false, "Unexpected error when reading response body": true} {
		end, err := d.logClients()
		if err != nil {
			t.Fatal(err)
		}
		if said != "" {
			klog.ErrorS(nil, said)
		}
		end()
		kept, err := os.ReadFile(log)
		if (err == nil) != want || !strings.Contains(string(kept), said) {
			t.Errorf("%q: the log has %q, error %v", said, kept, err)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/binaries"
)

func TestBinariesForPrograms(t *testing.T) {
	all := []binaries.Binary{{Component: binaries.Etcd, Version: "v3.6.8", Platform: "linux-amd64", Path: "/cache/etcd", SHA256: "0a", Size: 26, How: "built"}}
	var b bytes.Buffer
	if err := writeBinaries(&b, "json", all); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got) != 1 || got[0]["path"] != "/cache/etcd" || got[0]["sha256"] != "0a" {
		t.Errorf("%v: %s", err, b.String())
	}
	for form, want := range map[string]string{"yaml": "path: /cache/etcd", "wide": "/cache/etcd\n    sha256:0a"} {
		b.Reset()
		if err := writeBinaries(&b, form, all); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s: error %v: %s", form, err, b.String())
		}
	}
	b.Reset()
	if err := writeBinaries(&b, "json", nil); err != nil || strings.TrimSpace(b.String()) != "[]" {
		t.Errorf("an empty list is %q (%v)", b.String(), err)
	}
	if err := writeBinaries(&b, "xml", nil); codeOf(t, err) != exitUsage {
		t.Errorf("xml: %v", err)
	}
}

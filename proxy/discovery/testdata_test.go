package discovery

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// recordedFiles reads all files <version>-<what>.json of testdata. For aggregated documents ("api",
// "apis") it reads those of sim/recorded. It returns their contents by version.
func recordedFiles(t testing.TB, what string) map[string][]byte {
	t.Helper()
	folder := "testdata"
	if what == "api" || what == "apis" {
		folder = "../../sim/recorded/documents"
	}
	paths, err := filepath.Glob(folder + "/*-" + what + ".json")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		version, _, _ := strings.Cut(filepath.Base(path), "-"+what+".json")
		if files[version], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 2 {
		t.Fatalf("recorded documents %q: found %d, want several", what, len(files))
	}
	return files
}

func readCompressed(t testing.TB, path string) []byte {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return body
}

// recordedSources returns the recorded documents of "api" or "apis", one server for each version.
func recordedSources(t testing.TB, what string) []Source {
	t.Helper()
	var sources []Source
	for version, body := range recordedFiles(t, what) {
		groups, err := Decode("application/json", body)
		if err != nil {
			t.Fatalf("%s-%s: %v", version, what, err)
		}
		sources = append(sources, Source{Server: "server-" + version, Version: version, Groups: groups})
	}
	return NewestFirst(sources)
}

// encoded returns the groups in JSON, in which nil and empty lists differ.
func encoded(t testing.TB, groups Groups) string {
	t.Helper()
	body, err := json.Marshal(apidiscoveryv2.APIGroupDiscoveryList{Items: groups})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func copied(groups Groups) Groups {
	return (&apidiscoveryv2.APIGroupDiscoveryList{Items: groups}).DeepCopy().Items
}

func find[T any](t testing.TB, list []T, key func(*T) string, name string) *T {
	t.Helper()
	for i := range list {
		if key(&list[i]) == name {
			return &list[i]
		}
	}
	t.Fatalf("%q is not among %q", name, namesOf(list, key))
	return nil
}

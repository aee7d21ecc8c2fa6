package answer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// TestClassifyRecorded404 classifies bodies recorded from a kube-apiserver v1.37.1 (those of
// v1.36.3 are the same). A file's name gives the missing thing, the request, and the Accept header.
func TestClassifyRecorded404(t *testing.T) {
	files, err := filepath.Glob("testdata/notfound/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded bodies: %v", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, _, _ := strings.Cut(name, ".")
			_, status := Inspect(body)
			if got := ClassifyMissing(status); string(got) != want {
				t.Errorf("missing %q, want %q; body: %q", got, want, body)
			}
		})
	}
}

func TestClassifyMade404(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,`
	for _, tt := range []struct {
		name string
		body string
		want history.Missing
	}{
		{"empty body", ``, history.MissingResource},
		{"plain text", "404 page not found\n", history.MissingResource},
		{"HTML of some proxy", "<html>not found</html>", history.MissingResource},
		{"JSON that is not a Status", `{"kind":"ConfigMap","details":{"name":"x","kind":"configmaps"}}`, history.MissingResource},
		{"JSON of no kind", `{"details":{"name":"x","kind":"configmaps"}}`, history.MissingResource},
		{"Status cut short", status + `"reason":"NotFound","details":{"na`, history.MissingResource},
		{"no details at all", status + `"reason":"NotFound"}`, history.MissingResource},
		{"another reason", status + `"reason":"Gone","details":{"name":"x","kind":"configmaps"}}`, history.MissingResource},
		{"name without kind", status + `"reason":"NotFound","message":"\"x\" not found","details":{"name":"x"}}`, history.MissingObject},
		{"kind written after the rest", `{"reason":"NotFound","details":{"name":"x","kind":"pods"},"kind":"Status"}`, history.MissingObject},
		{
			// errors.NewGenericServerResponse makes this Status for a 404 of unknown form, with the
			// details of the request.
			"unknown resource, relayed by a client",
			status + `"reason":"NotFound","message":"the server could not find the requested resource (get things.g x)","details":{"name":"x","kind":"things"}}`,
			history.MissingResource,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, status := Inspect([]byte(tt.body))
			if got := ClassifyMissing(status); got != tt.want {
				t.Errorf("missing %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzInspect checks that no body makes the classifier panic, contradict itself, or classify a 404
// without a name or kind as a missing object.
func FuzzInspect(f *testing.F) {
	files, _ := filepath.Glob("testdata/notfound/*")
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"kind":"Table"}`))
	f.Add([]byte("k8s\x00\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		kind, status := Inspect(body)
		if (status != nil) != (kind == history.BodyStatus) {
			t.Fatalf("kind %q with status %v", kind, status)
		}
		if (kind == history.BodyNone) != (len(body) == 0) {
			t.Fatalf("a body of %d bytes is called %q", len(body), kind)
		}
		switch missing := ClassifyMissing(status); missing {
		case history.MissingResource:
		case history.MissingObject:
			if status.Details.Name == "" && status.Details.Kind == "" {
				t.Fatalf("missing object, but nothing is named: %+v", status)
			}
		default:
			t.Fatalf("a 404 is about %q", missing)
		}
	})
}

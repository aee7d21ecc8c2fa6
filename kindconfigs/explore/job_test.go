// Package explore has no code: it tests what lies beside it.
package explore

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func job(t *testing.T) *batchv1.Job {
	t.Helper()
	body, err := os.ReadFile("job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := batchv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*batchv1.Job)
}

// An index without a shard, or a shard without an index, would leave a part of the campaign out
// without a word.
func TestEveryIndexIsAShard(t *testing.T) {
	j := job(t)
	if j.Spec.CompletionMode == nil || *j.Spec.CompletionMode != batchv1.IndexedCompletion {
		t.Error("the job is not indexed: every pod would be the same shard")
	}
	for _, e := range j.Spec.Template.Spec.Containers[0].Env {
		if e.Name == "SHARDS" && e.Value != strconv.Itoa(int(*j.Spec.Completions)) {
			t.Errorf("%s shards and %d completions", e.Value, *j.Spec.Completions)
		}
	}
}

// The pod's script is run, with a skewproof that ends as it is told.
func TestThePodsScript(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		want    int
		says    string
	}{
		"no violation": {"mkdir -p /tmp/campaign; echo '{}' > /tmp/campaign/campaign.json; echo \"$@\" > /tmp/asked; exit 0", 0, "{}"},
		"a violation":  {"mkdir -p /tmp/campaign; echo '{}' > /tmp/campaign/campaign.json; exit 1", 0, "{}"},
		"wrong usage":  {"echo no such flag; exit 4", 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script := strings.ReplaceAll(job(t).Spec.Template.Spec.Containers[0].Args[0], "/tmp/", dir+"/")
			program := "#!/bin/sh\n" + strings.ReplaceAll(c.program, "/tmp/", dir+"/") + "\n"
			if err := os.WriteFile(filepath.Join(dir, "skewproof"), []byte(program), 0o755); err != nil {
				t.Fatal(err)
			}
			shell := exec.Command("/bin/sh", "-c", script)
			shell.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "JOB_COMPLETION_INDEX=7", "SHARDS=8", "POLICY=reference", "SEEDS=10"}
			out, err := shell.Output()
			if got := shell.ProcessState.ExitCode(); got != c.want || strings.TrimSpace(string(out)) != c.says {
				t.Errorf("exit code %d (%v), said %q; want %d and %q", got, err, out, c.want, c.says)
			}
			if asked, err := os.ReadFile(filepath.Join(dir, "asked")); err == nil && !strings.Contains(string(asked), "--shard 8/8") {
				t.Errorf("asked for %s, want the last shard", asked)
			}
		})
	}
}

package kind

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var own = history.OwnFlags{RuntimeConfig: new("api/ga=true"), Flags: []string{`tracing-config-file=/etc/"x"`, "feature-gates=WatchList=false"}}

// kubeadm gets the user's own flags once each, in either form of its configuration.
func TestOwnFlagsAreInKubeadmsConfiguration(t *testing.T) {
	for _, oldest := range []string{"v1.35.4", "v1.36.3"} {
		c := mixed(scenario.SubjectBuiltin, "v1.37.1", oldest)
		c.Own = own
		object := patchOf(t, parsed(t, c).KubeadmConfigPatches, "ClusterConfiguration")
		given := map[string][]string{}
		switch args := object["apiServer"].(map[string]any)["extraArgs"].(type) {
		case map[string]any:
			for name, value := range args {
				given[name] = append(given[name], value.(string))
			}
		case []any:
			for _, a := range args {
				one := a.(map[string]any)
				given[one["name"].(string)] = append(given[one["name"].(string)], one["value"].(string))
			}
		}
		for name, want := range map[string]string{
			"runtime-config": "api/ga=true", "tracing-config-file": `/etc/"x"`, "feature-gates": scenario.Gate + "=true,WatchList=false",
		} {
			if got := given[name]; len(got) != 1 || got[0] != want {
				t.Errorf("oldest %s: %s is %q, want %q once", oldest, name, got, want)
			}
		}
	}
	c := mixed(scenario.SubjectBuiltin, "v1.36.3")
	c.Own.RuntimeConfig = new("")
	if content, err := c.YAML(); err != nil || strings.Contains(string(content), "runtime-config") {
		t.Errorf("--runtime-config is given (%v):\n%s", err, content)
	}
}

// A server with a setup keeps the user's own feature gates, also in a patch, where a comma
// separates fields.
func TestOwnFlagsOutliveASetup(t *testing.T) {
	c := mixed(scenario.SubjectBuiltin, "v1.37.1", "v1.36.3")
	c.Own = own
	c.Nodes[0].Setup = &scenario.Setup{Proxy: scenario.Off}
	patch := c.Tree()["patches/"+c.PatchDir(c.Nodes[0])+"/kube-apiserver2+json.yaml"]
	var operations []struct{ Value string }
	if err := yaml.Unmarshal([]byte(patch), &operations); err != nil {
		t.Fatalf("%v in\n%s", err, patch)
	}
	want := "--feature-gates=" + scenario.Gate + "=false,WatchList=false"
	if len(operations) != 1 || operations[0].Value != want {
		t.Errorf("the patch is %+v, want %s:\n%s", operations, want, patch)
	}
	arguments, err := ownArguments("v1.36.3", scenario.SubjectBuiltin, &scenario.Setup{Flags: scenario.FlagsKubeadm}, own)
	if err != nil {
		t.Fatal(err)
	}
	emulating := history.OwnFlags{Flags: []string{"emulated-version=1.36", "requestheader-uid-headers=X-Remote-Uid"}}
	if again, err := ownArguments("v1.36.3", scenario.SubjectBuiltin, nil, emulating); err != nil || len(again) != 4 || again[3].Value != "1.36" {
		t.Errorf("a server that starts again has the arguments %+v (%v), want the emulated version, and each once", again, err)
	}
	line, err := commandLine([]byte(manifest), func(c *corev1.Container) { setUp(c, arguments) })
	if joined := strings.Join(line, " "); err != nil || !strings.Contains(joined, "--feature-gates=WatchList=false") || strings.Contains(joined, scenario.Gate) {
		t.Errorf("with the flags of kubeadm: %q (%v)", line, err)
	}
}

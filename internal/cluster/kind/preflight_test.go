package kind

import (
	"strings"
	"testing"
)

func TestNodeImages(t *testing.T) {
	if got := ImageName([]string{"v1.37.1", "v1.36.3", "v1.37.1"}); got != "skewproof/node:v1.36.3_v1.37.1" {
		t.Errorf("image %s", got)
	}
	tags := []string{"v1.35.4_v1.36.3_v1.37.1", "v1.36.3_v1.37.1", "v1.36.3", "<none>"}
	for wanted, image := range map[string]string{
		"v1.36.3":         "skewproof/node:v1.36.3",
		"v1.37.1 v1.36.3": "skewproof/node:v1.36.3_v1.37.1",         // not the one with an older kubelet
		"v1.35.4 v1.37.1": "skewproof/node:v1.35.4_v1.36.3_v1.37.1", // one more does no harm
		"v1.34.4":         "",
	} {
		got, ok := chooseImage(tags, strings.Fields(wanted))
		if ok != (image != "") || ok && got != image {
			t.Errorf("%s: %s, %v; want %q", wanted, got, ok, image)
		}
	}
}

func TestWhatAnEngineLacks(t *testing.T) {
	well := Engine{OSType: "linux", MemTotal: 8 << 30, DockerRootDir: "/var/lib/docker"}
	for name, c := range map[string]struct {
		engine Engine
		disk   int64
		want   string // in the error; empty for none
	}{
		"enough":            {well, 10 << 30, ""},
		"unknown disk":      {well, -1, ""},
		"little memory":     {Engine{OSType: "linux", MemTotal: 1 << 30}, 0, "1024 MiB of memory: 3 nodes need 1800"},
		"full disk":         {well, 1 << 30, "1024 MiB are free in /var/lib/docker"},
		"Windows container": {Engine{OSType: "windows", MemTotal: 8 << 30}, 0, "windows containers"},
	} {
		err := c.engine.check(3, c.disk)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// Other people's clusters are never touched.
func TestOnlyOurClustersAreCleaned(t *testing.T) {
	if _, err := Clean(t.Context(), "kind"); err == nil || !strings.Contains(err.Error(), "not made by skewproof") {
		t.Errorf("error %v, want a refusal", err)
	}
	name, err := NewName()
	if err != nil || !ours(name) {
		t.Errorf("name %q, %v: want one of ours", name, err)
	}
}

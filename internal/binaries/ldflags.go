package binaries

import (
	"regexp"
	"strings"
)

// fullCommit is a git commit as the module proxy tells it.
var fullCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// linkerFlags tell a binary which version it is: a kube-apiserver knows only its minor version by itself, and calls itself
// v0.0.0-master. The variables are those of upstream's hack/lib/version.sh. A commit that is not known ("") is left out, and
// so is the build date, which upstream sets to the day of the release: /version then has its defaults, and no invention.
// etcd's version is a part of its source (api/version/version.go); only the commit is set. The variables of the others are those of
// containerd's Makefile and of the CNI plugins' build_linux.sh.
func linkerFlags(ref Ref, commit string) string {
	flags := []string{"-s", "-w"}
	set := func(name, value string) { flags = append(flags, "-X", name+"="+value) }
	switch programs[ref.Component].project {
	case etcd:
		if fullCommit.MatchString(commit) {
			set("go.etcd.io/etcd/api/v3/version.GitSHA", commit[:9])
		}
		return strings.Join(flags, " ")
	case containerd:
		set("github.com/containerd/containerd/v2/version.Version", string(ref.Version))
		return strings.Join(flags, " ")
	case cniPlugins:
		set("github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion", string(ref.Version))
		return strings.Join(flags, " ")
	}
	major, minor := ref.Version.majorMinor()
	for _, pkg := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
		set(pkg+".gitVersion", string(ref.Version))
		set(pkg+".gitMajor", major)
		set(pkg+".gitMinor", minor)
		set(pkg+".gitTreeState", "clean")
		if fullCommit.MatchString(commit) {
			set(pkg+".gitCommit", commit)
		}
	}
	return strings.Join(flags, " ")
}

package run

import "runtime/debug"

// Version is the version of this program, as Go has recorded it: the version of the module if
// 'go install' built it, the tag or a pseudo-version if it was built in a clone, otherwise the
// commit. It is "devel" if Go recorded none of these, for example in a worktree of git.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

// versionOf returns the version in what Go has recorded: nil if nothing.
func versionOf(info *debug.BuildInfo) string {
	if info == nil {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	var revision, modified string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+dirty" // as Go marks a version
		}
	}
	if revision == "" {
		return "devel"
	}
	return revision[:min(len(revision), 12)] + modified
}

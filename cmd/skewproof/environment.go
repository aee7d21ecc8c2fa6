package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// environment says on what the run took place, as far as a reader of the report cares.
func environment() []string {
	facts := []string{fmt.Sprintf("%d CPUs", runtime.NumCPU())}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err == nil {
		facts = append(facts, "Linux "+unix.ByteSliceToString(uts.Release[:])+" "+unix.ByteSliceToString(uts.Machine[:]))
	}
	return facts
}

// version of this program: that of the module, or of the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "devel"
}

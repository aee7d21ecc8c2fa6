//go:build !linux

package binaries

import "os/exec"

// runGroup runs a command. Only the command itself is killed when its context ends: what it has started ends by itself
// within seconds, and the servers that a run needs are Linux programs in any case.
func runGroup(cmd *exec.Cmd) error { return cmd.Run() }

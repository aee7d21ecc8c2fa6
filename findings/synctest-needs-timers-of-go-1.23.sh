#!/usr/bin/env bash
# go 1.26.8: testing/synctest panics at its first call if the go line of the *main module* is older
# than 1.23, whatever toolchain runs it, because such a module gets the timers of Go 1.22
# (asynctimerchan=1). So a package whose tests pass in its own module fails when it is built in the
# module of somebody else, such as that of Kubernetes v1.30, although it compiles there. The setting
# GODEBUG=asynctimerchan=0 for that one run helps.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=go1.26.8 GOFLAGS= GOWORK=off
unset GODEBUG
cat >bubble_test.go <<'EOF'
package bubble

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestBubble(t *testing.T) {
	synctest.Test(t, func(*testing.T) { <-time.After(time.Hour) })
}
EOF
changed=0
expect() { # go line · GODEBUG · want "passes" or "panics"
  local said got=passes
  printf 'module example.org/finding\n\ngo %s\n' "$1" >go.mod
  said=$(env ${2:+GODEBUG="$2"} go test -count=1 . 2>&1) || got=fails
  [[ $said != *"panic: synctest.Run not supported with asynctimerchan!=0"* ]] || got=panics
  printf 'go %-5s %-20s %s\n' "$1" "${2:-no GODEBUG}" "$got"
  [ "$got" = "$3" ] || changed=1
}
go version
expect 1.22 '' panics
expect 1.22 asynctimerchan=0 passes
expect 1.23 '' passes
expect 1.25 asynctimerchan=1 panics
[ "$changed" = 0 ] || { echo CHANGED; exit 1; }

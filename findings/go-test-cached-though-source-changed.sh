#!/usr/bin/env bash
# go 1.26.8: 'go test' says (cached) although a file of the tested package changed, if the linked
# test program is the same, byte for byte. A function that nothing calls is dropped by the linker, and
# an expression of constants is folded by the compiler. So "after one changed line" measures nothing if
# the line is such a one. A changed text that is in the program makes the test run.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=go1.26.8 GOFLAGS= GOCACHE="$dir/cache" GOWORK=off
cat >go.mod <<'EOF'
module example.org/finding

go 1.26.0
EOF
cat >a_test.go <<'EOF'
package a

import "testing"

func TestAnswer(t *testing.T) {
	if t.Log(Why); Answer() != 42 {
		t.Fatal("wrong")
	}
}
EOF
source() {
  printf 'package a\n\nvar Why = "%s"\n\nfunc Answer() int { return %s }\n%s\n' "$1" "$2" "$3" >a.go
}
changed=0
expect() { # what · want "cached" or "run"
  local said got=run
  said=$(go test .)
  [[ $said != *"(cached)" ]] || got=cached
  printf '%-36s %s\n' "$1:" "$got"
  [ "$got" = "$2" ] || changed=1
}
go version
source 'asked' 42 ''
expect 'first' run
source 'asked' 42 'func unused() int { return 43 }'
expect 'a function that nothing calls' cached
source 'asked' '6 * 7' ''
expect 'another way to write a constant' cached
source 'asked again' 42 ''
expect 'another text in the program' run
[ "$changed" = 0 ] || { echo CHANGED; exit 1; }

package lab

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// found is the table that 'make net' prints: a line for each part of the net.
var found struct {
	sync.Mutex
	lines []string
}

// note adds a line to the table: how many things a part holds, and what it says of them.
func note(part string, holds int, says string) {
	found.Lock()
	defer found.Unlock()
	found.lines = append(found.lines, fmt.Sprintf("%-22s %6d  %s", part, holds, says))
}

func TestMain(m *testing.M) {
	code := m.Run()
	if (*full || *mutants != "") && len(found.lines) > 0 {
		fmt.Printf("\n%-22s %6s  %s\n", "part", "holds", "of which")
		for _, line := range found.lines {
			fmt.Println(line)
		}
	}
	os.Exit(code)
}

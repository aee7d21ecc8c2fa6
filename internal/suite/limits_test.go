package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestMoreRunsAtATimeThanThereIsRoomFor(t *testing.T) {
	const gb = 1 << 30
	for name, c := range map[string]struct {
		room      room
		parallel  int
		backend   string
		reference bool
		want      []string // nothing: no warning
	}{
		"one needs no choice":               {room{1, gb}, 1, backendLocal, true, nil},
		"room enough":                       {room{4, 8 * gb}, 4, backendLocal, false, nil},
		"too few processors":                {room{2, 64 * gb}, 3, backendLocal, false, []string{"3 runs take 3 processors, and there are 2"}},
		"too few for two processes":         {room{2, 64 * gb}, 2, backendLocal, true, []string{"2 runs take 3 processors, and there are 2"}},
		"just enough for two processes":     {room{3, 64 * gb}, 2, backendLocal, true, nil},
		"too little memory":                 {room{8, 3 * gb}, 2, backendKind, false, []string{"2 runs take 4 GB of memory, and 3.0 GB can be had"}},
		"memory that is not known":          {room{8, 0}, 4, backendLocal, false, nil},
		"too little of both":                {room{1, gb}, 2, backendLocal, false, []string{"processors", "; ", "memory"}},
		"the simulator has small processes": {room{2, gb}, 2, backendSim, true, nil},
		"the simulator computes":            {room{2, gb}, 3, backendSim, true, []string{"3 runs take 3 processors"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.room.lacks(c.parallel, c.backend, c.reference)
			if (got == "") != (c.want == nil) {
				t.Errorf("it lacks %q, want %q", got, c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("it lacks %q, want %q in it", got, want)
				}
			}
		})
	}
}

func TestAvailableMemory(t *testing.T) {
	for meminfo, want := range map[string]uint64{
		"MemTotal:  8052084 kB\nMemAvailable:    1024 kB\nSwapFree: 1 kB\n": 1 << 20,
		"MemTotal: 1 kB\n":        0,
		"MemAvailable: many kB\n": 0,
		"":                        0,
	} {
		if got := available(meminfo); got != want {
			t.Errorf("%q: %d, want %d", meminfo, got, want)
		}
	}
}

// It is said once, and only where there is something to say.
func TestTheWarningIsOneLine(t *testing.T) {
	for parallel, lines := range map[int]int{1: 0, 1 << 20: 1} {
		var said bytes.Buffer
		warnCrowded(&said, parallel, backendLocal, "builtin")
		if got := strings.Count(said.String(), "\n"); got != lines {
			t.Errorf("--parallel %d: %q, want %d lines", parallel, said.String(), lines)
		}
	}
}

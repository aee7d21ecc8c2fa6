package binaries

import (
	"slices"
	"testing"
)

func TestAvailableMemory(t *testing.T) {
	for _, tc := range []struct {
		meminfo, limit string
		want           uint64
	}{
		{"MemTotal:  8052084 kB\nMemAvailable:    1024 kB\nSwapFree: 1 kB\n", "", 1 << 20},
		{"MemAvailable: 1024 kB\n", "max\n", 1 << 20},
		{"MemAvailable: 1024 kB\n", "524288\n", 1 << 19},
		{"MemAvailable: 1024 kB\n", "2097152\n", 1 << 20},
		{"MemTotal: 1 kB\n", "", 0},
		{"MemAvailable: many kB\n", "", 0},
		{"", "524288\n", 0},
	} {
		if got := available(tc.meminfo, tc.limit); got != tc.want {
			t.Errorf("%q, limit %q: %d, want %d", tc.meminfo, tc.limit, got, tc.want)
		}
	}
}

func TestCollector(t *testing.T) {
	for _, tc := range []struct {
		name                string
		available           uint64
		processors          int
		userGOGC, userLimit string
		want                []string
	}{
		{"much memory", 16 << 30, 2, "", "", []string{"GOGC=off", "GOMEMLIMIT=2147483648"}},
		{"some memory", 6 << 30, 4, "", "", []string{"GOGC=off", "GOMEMLIMIT=1288490188"}},
		{"little memory", 2 << 30, 2, "", "", nil},
		{"much memory for more processors", 16 << 30, 32, "", "", nil},
		{"unknown memory", 0, 2, "", "", nil},
		{"the user's GOGC", 16 << 30, 2, "100", "", nil},
		{"the user's GOMEMLIMIT", 16 << 30, 2, "", "1GiB", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("GOGC", tc.userGOGC)
			t.Setenv("GOMEMLIMIT", tc.userLimit)
			if got := collector(tc.available, tc.processors); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

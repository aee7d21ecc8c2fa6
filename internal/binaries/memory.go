package binaries

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// AvailableMemory returns the memory in bytes that this process and its children can use without
// swapping. It is 0 if it is not known.
func AvailableMemory() uint64 {
	meminfo, _ := os.ReadFile("/proc/meminfo")
	limit, _ := os.ReadFile("/sys/fs/cgroup/memory.max") // in a container, that of the container
	return available(string(meminfo), string(limit))
}

// available is MemAvailable of /proc/meminfo (proc_meminfo(5)), but not more than the limit of a
// control group, which is a number or "max".
func available(meminfo, limit string) uint64 {
	most, err := strconv.ParseUint(strings.TrimSpace(limit), 10, 64)
	if err != nil {
		most = math.MaxUint64
	}
	for line := range strings.Lines(meminfo) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemAvailable:" {
			kilobytes, _ := strconv.ParseUint(fields[1], 10, 64)
			return min(kilobytes<<10, most)
		}
	}
	return 0
}

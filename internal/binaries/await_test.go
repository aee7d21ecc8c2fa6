package binaries

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// poll tries a condition until it holds or the test is over. Files and processes of others cannot
// be waited on otherwise.
func poll(t *testing.T, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			return
		}
	}
}

// await returns the text of a file once there is one.
func await(t *testing.T, path string) string {
	t.Helper()
	var text []byte
	poll(t, func() bool {
		var err error
		text, err = os.ReadFile(path)
		return err == nil
	})
	return strings.TrimSpace(string(text))
}

// awaitGone returns once the process has ended. A process that was not reaped yet counts as ended.
func awaitGone(t *testing.T, pid string) {
	t.Helper()
	poll(t, func() bool {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	})
}

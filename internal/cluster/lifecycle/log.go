package lifecycle

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// Log is the output of one process, in a file that the processes of several incarnations share.
type Log struct {
	Path string
	From int64 // where this process's output begins, in bytes
}

// OpenLog opens a file for a process to append to. The caller closes the file.
func OpenLog(path string) (*os.File, Log, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, Log{}, fmt.Errorf("open its log: %w", err)
	}
	from, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		_ = file.Close()
		return nil, Log{}, fmt.Errorf("open its log: %w", err)
	}
	return file, Log{path, from}, nil
}

// Tail returns the last lines of the log; "" if it is empty or cannot be read.
func (l Log) Tail(lines int) string {
	content, err := l.read()
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Panics returns the lines about a panic, up to a byte of the file (negative: to the end). Source:
// HandleCrash in k8s.io/apimachinery/pkg/util/runtime logs "Observed a panic"; net/http logs "http:
// panic serving" for a handler; the others are the Go runtime's.
func (l Log) Panics(to int64) []string {
	content, err := l.read()
	if err != nil {
		return nil
	}
	if to >= 0 {
		content = content[:min(int64(len(content)), to-l.From)]
	}
	var found []string
	for line := range bytes.Lines(content) {
		if bytes.Contains(line, []byte("Observed a panic")) || bytes.Contains(line, []byte(": panic serving ")) ||
			bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
			found = append(found, shortened(strings.TrimSpace(string(line))))
		}
	}
	return found
}

// shortened returns a line without the stack that structured logs put into it.
func shortened(line string) string {
	const most = 300
	line, _, _ = strings.Cut(line, `\ngoroutine `)
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

func (l Log) read() ([]byte, error) {
	content, err := os.ReadFile(l.Path)
	return content[min(l.From, int64(len(content))):], err
}

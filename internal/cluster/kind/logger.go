package kind

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"

	"sigs.k8s.io/kind/pkg/log"
)

// logger writes kind's log to a file, and shows kind's stages to people. kind calls it between its
// stages and continues when it returns, so that stage can do something in between.
type logger struct {
	mu     sync.Mutex
	all    io.Writer
	status func(string, ...any)
	stage  func()
}

var _ log.Logger = (*logger)(nil)

func (l *logger) write(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.all, strings.TrimRight(text, "\n")+"\n")
}

// Warn and the others implement [log.Logger]. Warnings are about the network variable and cgroup
// v1, which are known.
func (l *logger) Warn(message string)            { l.write(message) }
func (l *logger) Warnf(format string, a ...any)  { l.write(fmt.Sprintf(format, a...)) }
func (l *logger) Error(message string)           { l.write(message) }
func (l *logger) Errorf(format string, a ...any) { l.write(fmt.Sprintf(format, a...)) }
func (l *logger) V(level log.Level) log.InfoLogger {
	return info{l, level}
}

type info struct {
	*logger
	level log.Level
}

// Info implements [log.InfoLogger].
func (i info) Info(message string) { i.Infof("%s", message) }

// Infof implements [log.InfoLogger].
func (i info) Infof(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	i.write(text)
	if i.level > 0 {
		return
	}
	if stage, ok := strings.CutPrefix(strings.TrimSpace(text), "•"); ok {
		i.status("kind: %s", plain(stage))
	}
	i.stage()
}

// Enabled implements [log.InfoLogger]: the file gets everything, above all the output of kubeadm.
func (info) Enabled() bool { return true }

// plain is the name of a stage without the emoji and dots at its end.
func plain(stage string) string {
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if r > unicode.MaxLatin1 {
			return -1
		}
		return r
	}, strings.TrimSpace(stage)), " .")
}

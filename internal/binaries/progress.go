package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// progressInterval is the interval at which a long task reports that it still runs. It is short
// enough for a person who watches, and long enough for a CI log. A bar on a terminal is drawn again
// at every barInterval.
const (
	progressInterval = 30 * time.Second
	barInterval      = time.Second
)

// progress writes lines about one binary for people. It ignores errors of the writer.
type progress struct {
	mu    *sync.Mutex // of the Store: several binaries may be fetched at once
	w     io.Writer
	ref   Ref
	every time.Duration
	bar   bool // w is a terminal
}

// eraseLine erases the line of a terminal (ECMA-48, EL), and with it a bar.
const eraseLine = "\r\x1b[K"

func (p progress) say(format string, args ...any) {
	line := fmt.Sprintf("%s: %s\n", p.ref, fmt.Sprintf(format, args...))
	if p.bar {
		line = eraseLine + line
	}
	p.write(line)
}

func (p progress) write(text string) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.w, text)
}

// during reports a task at once, and then at every interval with the elapsed time, until done is
// called. estimate is about how long the task takes, or 0 if that is unknown. It adds the result of
// detail at every interval; nil means none. On a terminal, a task with an estimate has a bar, which
// is erased at the end.
func (p progress) during(what string, estimate time.Duration, detail func() string) (done func()) {
	first, of := what, " so far"
	if estimate > 0 {
		first, of = what+", about "+Rounded(estimate), " of about "+Rounded(estimate)
	}
	p.say("%s", first)
	start := time.Now()
	bar := p.bar && estimate > 0
	every := p.every
	if bar {
		every = min(every, barInterval)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			elapsed := time.Since(start)
			if bar {
				p.write(eraseLine + drawBar(p.ref, elapsed, estimate))
				continue
			}
			line := fmt.Sprintf("still %s, %s%s", what, elapsed.Round(time.Second), of)
			if detail != nil {
				line += ", " + detail()
			}
			p.say("%s", line)
		}
	})
	return func() {
		cancel()
		wg.Wait()
		if bar {
			p.write(eraseLine)
		}
	}
}

// barWidth is the number of characters in a full bar. With the text around it, it fits in 80
// columns.
const barWidth = 30

// drawBar is one line without its end. A task that takes longer than its estimate has a full bar.
func drawBar(ref Ref, elapsed, estimate time.Duration) string {
	full := int(min(1, float64(elapsed)/float64(estimate)) * barWidth)
	return fmt.Sprintf("%s [%s%s] %s of about %s", ref, strings.Repeat("#", full), strings.Repeat(".", barWidth-full),
		elapsed.Round(time.Second), Rounded(estimate))
}

// Rounded writes an estimate for people.
func Rounded(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d seconds", max(1, int(d.Round(time.Second).Seconds())))
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Minutes()), ".0") + " minutes"
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

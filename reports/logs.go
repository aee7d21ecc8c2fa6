package reports

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// mostLogLines is how many lines of the logs are shown for one violation.
	mostLogLines = 24
	// longestLogLine is the length to which lines are cut, in characters.
	longestLogLine = 320
	// mostLogHeld bounds the lines of one log that are held for one violation.
	mostLogHeld = 2000
)

// LogLine is a line that a server wrote near a violation.
type LogLine struct {
	// Log is the name of the log, which is that of the server.
	Log string `json:"log"`
	// AtSeconds is the time that the line itself names.
	AtSeconds Seconds `json:"atSeconds"`
	// Text is the line, cut to a readable length.
	Text string `json:"text"`
	// severe is true for warnings and errors.
	severe bool
}

// CollectLogs adds to the violations that a page shows in full the lines that the servers wrote
// within two seconds of them. open opens the log of that name. Logs that open cannot open are left
// out, because many runs have none; an error while a log is read is returned.
func (r *RunReport) CollectLogs(open func(name string) (io.ReadCloser, error)) error {
	var shown []*Evidence
	for _, e := range r.shown() {
		if len(e.Requests) > 0 || e.Process != nil {
			e.Log, e.LogTotal = nil, 0
			shown = append(shown, e)
		}
	}
	if len(shown) == 0 {
		return nil
	}
	for _, s := range r.Servers {
		log, err := open(s.Name)
		if err != nil {
			continue
		}
		err = r.readLog(log, s.Name, s, shown)
		if err := cmp.Or(err, log.Close()); err != nil {
			return fmt.Errorf("read the log %q: %w", s.Name, err)
		}
	}
	for _, e := range shown {
		e.Log = e.nearestLines()
	}
	return nil
}

// readLog adds the lines of one log to the violations near which they were written.
func (r *RunReport) readLog(log io.Reader, name string, s Server, shown []*Evidence) error {
	started := r.Metadata.StartedAt
	if len(s.Versions) > 0 {
		started = started.Add(time.Duration(float64(s.Versions[0].StartSeconds) * 1e9))
	}
	zone := &logZone{started: started}
	held := map[*Evidence]int{}
	lines := bufio.NewReaderSize(log, 64<<10)
	for {
		raw, more, err := lines.ReadLine()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		text := string(raw[:min(len(raw), 4*longestLogLine)])
		for more && err == nil { // the rest of a line that is longer than the buffer
			_, more, err = lines.ReadLine()
		}
		at, ok := zone.timeOf(text)
		if !ok {
			continue
		}
		line := LogLine{Log: name, AtSeconds: seconds(at.Sub(r.Metadata.StartedAt)), Text: cutTo(text, longestLogLine), severe: severe(text)}
		for _, e := range shown {
			from, to := e.window()
			if line.AtSeconds < from || line.AtSeconds > to {
				continue
			}
			e.LogTotal++
			if held[e]++; held[e] <= mostLogHeld {
				e.Log = append(e.Log, line)
			}
		}
	}
}

// window is the time around the violation that is shown.
func (e Evidence) window() (from, to Seconds) {
	const around = Seconds(aroundWindow) / Seconds(time.Second)
	if len(e.Requests) == 0 {
		return e.Process.AtSeconds - around, e.Process.AtSeconds + around
	}
	q := e.Requests[0]
	return q.StartSeconds - around, q.StartSeconds + q.DurationSeconds + around
}

// nearestLines are the lines to show, in time order: first warnings and errors, then those that are
// nearest in time.
func (e Evidence) nearestLines() []LogLine {
	from, to := e.window()
	far := func(l LogLine) float64 { return math.Abs(float64(l.AtSeconds - (from+to)/2)) }
	slices.SortStableFunc(e.Log, func(a, b LogLine) int {
		return cmp.Or(-truth(a.severe, b.severe), cmp.Compare(far(a), far(b)))
	})
	out := e.Log[:min(len(e.Log), mostLogLines)]
	slices.SortStableFunc(out, func(a, b LogLine) int { return cmp.Compare(a.AtSeconds, b.AtSeconds) })
	return slices.Clip(out)
}

func cutTo(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

var (
	klogHeader = regexp.MustCompile(`^([IWEF])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d\.\d+)`)
	logStamp   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
)

// severe reports whether the line is a warning or an error.
func severe(line string) bool {
	if m := klogHeader.FindStringSubmatch(line); m != nil {
		return m[1] != "I"
	}
	return strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")
}

// logZone reads the times of one log. Lines of klog name neither a year nor a time zone; the first
// line of a log was written when its process was started.
type logZone struct {
	started time.Time
	known   bool
	ahead   time.Duration // how far the times of klog are ahead of UTC
}

// timeOf is the time that the line names. ok is false if it names none.
func (z *logZone) timeOf(line string) (at time.Time, ok bool) {
	if m := klogHeader.FindStringSubmatch(line); m != nil {
		return z.klog(m)
	}
	stamp := logStamp.FindString(line[:min(len(line), 200)])
	at, err := time.Parse(time.RFC3339Nano, stamp)
	return at, err == nil
}

func (z *logZone) klog(m []string) (at time.Time, ok bool) {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n } // the expression takes digits only
	second, err := strconv.ParseFloat(m[6], 64)
	if err != nil {
		return at, false
	}
	at = time.Date(z.started.Year(), time.Month(number(m[2])), number(m[3]), number(m[4]), number(m[5]), 0, int(second*1e9), time.UTC)
	const halfAYear = 183 * 24 * time.Hour
	switch apart := at.Sub(z.started); {
	case apart > halfAYear:
		at = at.AddDate(-1, 0, 0)
	case apart < -halfAYear:
		at = at.AddDate(1, 0, 0)
	}
	if !z.known {
		z.known, z.ahead = true, at.Sub(z.started).Round(15*time.Minute)
	}
	return at.Add(-z.ahead), true
}

package reports

import (
	"fmt"
	"io"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// TypeMeta identifies the kind of a document.
type TypeMeta struct {
	// APIVersion is always [APIVersion].
	APIVersion string `json:"apiVersion"`
	// Kind is always the constant with the name of the document, such as [MatrixKind].
	Kind string `json:"kind"`
}

// OfKind identifies a document of a kind.
func OfKind(kind string) TypeMeta { return TypeMeta{APIVersion, kind} }

// Made says when the runs of a suite were carried out, and by what.
type Made struct {
	// StartedAt is the wall time of the start.
	StartedAt time.Time `json:"startedAt"`
	// DurationSeconds is the time until the last run ended, including negative controls. Runs may
	// have overlapped.
	DurationSeconds Seconds `json:"durationSeconds"`
	// SkewproofVersion is the version of the program that ran them.
	SkewproofVersion string `json:"skewproofVersion"`
}

// NewMade is for runs that began at a time and have ended just now.
func NewMade(began time.Time, version string) Made {
	return Made{began.UTC(), SecondsOf(time.Since(began)), version}
}

// facts adds to the facts of a page when the runs were carried out, and how long they took.
func (m Made) facts(all [][2]string) [][2]string {
	return append(all, [2]string{"Duration", lasting(m.DurationSeconds)}, [2]string{"Started", m.StartedAt.Format("2006-01-02 15:04:05 MST")})
}

// Repetition says how to repeat the runs of a suite, and where they were carried out.
type Repetition struct {
	// Reproduce is the command line that repeats all of them.
	Reproduce string `json:"reproduce"`
	// Environment lists what the runs depended on; one fact per entry.
	Environment []string `json:"environment,omitempty"`
}

// Tested identifies what was tested beyond its version, because two builds may have the same
// version.
type Tested struct {
	// Label is the user's name for it. It is empty if the user gave none.
	Label string `json:"label,omitempty"`
	// Binaries are the programs that were started, if they are files: on the backend "local".
	Binaries []history.Binary `json:"binaries,omitempty"`
}

// lines says what identifies the tested programs beyond their versions: the label, and the binaries
// that the user gave.
func (t Tested) lines() (lines []string) {
	if t.Label != "" {
		lines = append(lines, "label: "+t.Label)
	}
	for _, b := range t.Binaries {
		if b.Own {
			lines = append(lines, identified(b))
		}
	}
	return lines
}

// identified describes a binary in a line: "kube-apiserver v1.37.1: Kubernetes v1.37.1-dirty,
// sha256:…".
func identified(b history.Binary) string {
	line := fmt.Sprintf("%s %s: %s, sha256:%s", b.Component, b.Version, b.Says, b.SHA256)
	if b.Own {
		line += " (given by the user)"
	}
	return line
}

// Properties identify in JUnit XML what was tested.
func (t Tested) Properties() (all []JUnitProperty) {
	if t.Label != "" {
		all = append(all, JUnitProperty{Name: "label", Value: t.Label})
	}
	for _, b := range t.Binaries {
		name := b.Component + " " + b.Version
		all = append(all, JUnitProperty{Name: name, Value: b.Says}, JUnitProperty{Name: name + " sha256", Value: b.SHA256})
	}
	return all
}

// summarize writes the lines for a terminal.
func (t Tested) summarize(w io.Writer) {
	lines := t.lines()
	for _, line := range lines {
		fmt.Fprintln(w, plain(line))
	}
	if len(lines) > 0 {
		fmt.Fprintln(w)
	}
}

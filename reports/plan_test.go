package reports

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// hostile is a name that a server, or a recording, may have.
const hostileName = "<script>alert(1)</script>`|*x*_y_[l](javascript:1)\x1b[31m\u202e\n# h\n| a | b |"

func hostilePlan() UpgradePlan {
	h := hostileName
	users := []PlanUser{{Who: "w", Does: "d", Source: h}}
	resource := PlanResource{GVR: history.GVR{Group: h, Version: h, Resource: h}, Subresource: h, On: PlanByDefault, Other: []string{h}, Users: users}
	side := PlanSide{Version: h, Why: "w"}
	return UpgradePlan{
		From: h, To: h, SkewproofVersion: h, Sentence: "One. `code`", Notes: []string{h}, Harms: []PlanHarm{{h, h, h, h}}, Demands: []PlanDemand{{h, h, []string{h}, h}}, Comparison: []string{h}, Appears: []PlanResource{resource},
		Vanishes:   []PlanResource{resource},
		FieldHarms: []PlanFieldHarm{{h, []string{h}, []string{h}, h, h, []string{h}, true}}, Fields: []recorded.FieldSkew{{
			GVR: history.GVR{Group: h, Version: h, Resource: h}, Kind: h, Path: h, Values: []string{h}, Older: recorded.FieldSide{Outcome: recorded.FieldOutcome(h), Says: h},
			Newer: recorded.FieldSide{Outcome: recorded.FieldOutcome(h), Stored: json.RawMessage(h), Elsewhere: []string{h}}, Update: recorded.FieldFate(h), Gates: []recorded.FieldGate{{Name: h}},
		}},
		Created: []recorded.Created{{GVR: history.GVR{Resource: h}, By: []string{h}, Names: []string{h}}}, Permissions: []PlanPermission{{h, h, []string{h}, []string{h}}},
		Protection: []PlanProtection{{Configuration: "`" + h + "`", Old: side, New: side}},
		Findings:   []PlanFinding{{Number: 1, Title: h, Servers: h, When: h, Deleted: h, Hangs: h, Noticed: h, Lasts: h}},
		Checklist:  []PlanStep{{Title: h, Text: h, Commands: []string{h, "```"}, File: h}}, Metrics: []PlanMetric{{h, h, h, h, h, h}},
		Stop: []string{h}, StopCommands: []string{h},
		Back:      []string{h},
		Rehearsal: []PlanScenario{{h, h, h, h, h}}, Lacks: []string{h},
	}
}

// Names in a page are text: no element, attribute or link comes from them.
func TestHostileNamesAreInertInThePageOfAPlan(t *testing.T) {
	var b bytes.Buffer
	if err := WritePlanHTML(&b, hostilePlan()); err != nil {
		t.Fatal(err)
	}
	page, err := html.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for n := range page.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" || n.Data == "img" || n.Data == "iframe" {
			t.Errorf("there is an element %s", n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "href" && !strings.HasPrefix(a.Val, "#part-") {
				t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
			}
		}
	}
	if !strings.Contains(b.String(), "&lt;script&gt;alert(1)") {
		t.Error("the names are not there at all")
	}
}

// Names in Markdown cannot end a line or their code.
func TestHostileNamesAreInertInMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := WritePlanMarkdown(&b, hostilePlan()); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for _, never := range []string{"\x1b", "\u202e"} {
		if strings.Contains(out, never) {
			t.Errorf("the Markdown has %q", never)
		}
	}
	inCode := false
	for line := range strings.SplitSeq(out, "\n") {
		switch outside := withoutCode(line); {
		case line == "   ```":
			inCode = !inCode
		case inCode && strings.Contains(line, "```"):
			t.Errorf("a command ends its block: %s", line)
		case inCode:
		case strings.HasPrefix(line, "# h") || strings.HasPrefix(line, "| a | b |"):
			t.Errorf("a name ended its line: %s", line)
		case strings.Contains(outside, "<script") || strings.Contains(outside, "[l]("):
			t.Errorf("there is markup outside code: %s", line)
		}
	}
	if inCode {
		t.Error("a block of code does not end")
	}
}

// withoutCode removes code spans and escaped characters from a line of Markdown.
func withoutCode(line string) string {
	var b strings.Builder
	for line != "" {
		switch {
		case line[0] == '\\' && len(line) > 1:
			line = line[2:]
		case line[0] == '`':
			n := len(line) - len(strings.TrimLeft(line, "`"))
			_, after, ok := strings.Cut(line[n:], line[:n])
			if !ok {
				return b.String() + line
			}
			line = after
		default:
			b.WriteByte(line[0])
			line = line[1:]
		}
	}
	return b.String()
}

func TestHostileNamesAreInertInATerminal(t *testing.T) {
	var b bytes.Buffer
	if err := WritePlanText(&b, hostilePlan()); err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"\x1b", "\u202e", "\n# h"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("the text has %q", never)
		}
	}
}

func TestMarkdownText(t *testing.T) {
	for in, want := range map[string]string{
		"a_b*c": `a\_b\*c`, "<b>": `\<b\>`, "a|b": `a\|b`, "a\nb": "a b", "`x`": "\\`x\\`", "a\u202eb": "ab",
	} {
		if got := markdownText(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestProse(t *testing.T) {
	want := planText{{"a ", false}, {"b", true}, {" c", false}}
	if got := prose("a `b` c"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// Text for a terminal has lines that fit, and keeps every word.
func TestFilled(t *testing.T) {
	text := strings.Repeat("word ", 100)
	out := filled("  - ", text)
	for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		if len(line) > mostColumns || !strings.HasPrefix(line, "  - ") && !strings.HasPrefix(line, "    ") {
			t.Errorf("line %q", line)
		}
	}
	if got := strings.Count(out, "word"); got != 100 {
		t.Errorf("%d words of 100", got)
	}
}

func FuzzMarkdownStaysInItsLine(f *testing.F) {
	f.Add(hostileName)
	f.Add("``a`")
	f.Fuzz(func(t *testing.T, s string) {
		text := markdownPlan.text(prose(s + code(s)))
		if strings.ContainsAny(text, "\n\r\x1b") {
			t.Errorf("%q becomes %q", s, text)
		}
		if named := markdownPlan.text(prose(code(s))); withoutCode(named) != "" {
			t.Errorf("%q leaves its code: %q", s, named)
		}
	})
}

package reports

import (
	"bytes"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
)

// steering turns text around, moves a cursor, and rings a bell, in every way there is.
const steering = "\u202eevil\u202c\u2066x\u2069\u200f\x1b[2J\x1b]0;title\x07\u009b31m\r\u0085\u2028end"

// steered is a way to write a poisoned report.
type steered struct {
	name  string
	write func(io.Writer) error
}

// as poisons a report, and names the ways to write it.
func as[T any](report T, ways map[string]func(io.Writer, T) error) (all []steered) {
	poison(reflect.ValueOf(&report).Elem(), steering)
	for name, write := range ways {
		all = append(all, steered{name, func(w io.Writer) error { return write(w, report) }})
	}
	return all
}

func inText[T any](write func(io.Writer, T, SummaryOptions) error) func(io.Writer, T) error {
	return func(w io.Writer, report T) error { return write(w, report, SummaryOptions{}) }
}

// TestNothingWrittenControlsItsViewer writes every report with hostile strings in every field: no
// page, no text and no JUnit document has a character that controls a terminal or turns text
// around.
func TestNothingWrittenControlsItsViewer(t *testing.T) {
	var all []steered
	all = append(all, as(small(), map[string]func(io.Writer, RunReport) error{"run, page": WriteHTML, "run, JUnit": WriteJUnit, "run, text": inText(WriteSummary)})...)
	for name, c := range map[string]*Campaign{"campaign": smallCampaign(), "real campaign": realCampaign()} {
		all = append(all, as(c, map[string]func(io.Writer, *Campaign) error{name + ", page": WriteCampaignHTML, name + ", text": inText(WriteCampaignSummary)})...)
	}
	all = append(all, as(smallConformance(), map[string]func(io.Writer, ConformanceReport) error{
		"conformance, page": WriteConformanceHTML, "conformance, text": inText(WriteConformanceSummary),
	})...)
	all = append(all, asTables("matrix", smallMatrix())...)
	all = append(all, asTables("clients", smallClients())...)
	all = append(all, asTables("ablation", smallAblation())...)
	all = append(all, asTables("smallest set", smallestForTests())...)
	all = append(all, asTables("upstream-e2e", upstreamStory())...)
	all = append(all, as(smallComparison(), map[string]func(io.Writer, Comparison) error{
		"comparison, page": func(w io.Writer, c Comparison) error { return WriteComparisonHTML(w, c, "v1") },
		"comparison, text": WriteComparisonText, "comparison, Markdown": WriteComparisonMarkdown,
	})...)
	all = append(all, as(hostilePlan(), map[string]func(io.Writer, UpgradePlan) error{
		"plan, page": WritePlanHTML, "plan, text": WritePlanText, "plan, wide": WritePlanWide, "plan, Markdown": WritePlanMarkdown,
	})...)
	all = append(all, as(upstreamStory(), map[string]func(io.Writer, UpstreamTests) error{
		"upstream-e2e, JUnit": func(w io.Writer, u UpstreamTests) error {
			content, err := upstreamJUnit(u).Encode()
			_, _ = w.Write(content)
			return err
		},
	})...)
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := x.write(&b); err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(b.Bytes(), []byte("evil")) {
				t.Error("it has no hostile string: the test tests nothing")
			}
			for _, r := range b.String() {
				if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028') {
					t.Fatalf("it has the character %U", r)
				}
			}
			for _, reference := range []string{"&#xD;", "&#13;", "&#x1b", "&#27;"} {
				if bytes.Contains(bytes.ToLower(b.Bytes()), bytes.ToLower([]byte(reference))) {
					t.Errorf("it has %s", reference)
				}
			}
		})
	}
}

// asHTML, asText and asMarkdown write a document that is shown as tables.
func asHTML[T Tables](w io.Writer, d T) error { return d.page().html(w) }
func asText[T Tables](w io.Writer, d T) error { return WriteTables(w, d, SummaryOptions{}) }
func asMarkdown[T Tables](w io.Writer, d T) error {
	_, err := io.WriteString(w, d.page().markdown())
	return err
}

func asTables[T Tables](name string, d T) []steered {
	return as(d, map[string]func(io.Writer, T) error{name + ", page": asHTML[T], name + ", text": asText[T], name + ", Markdown": asMarkdown[T]})
}

// hostilePage is a page, and the same with a hostile string in every field.
type hostilePage struct {
	honest, poisoned *html.Node
	links            []string // to other files; nil if every link but to a script is right
}

func hostilePageOf[T any](t *testing.T, write func(io.Writer, T) error, made func() T, links ...string) hostilePage {
	t.Helper()
	bad := made()
	poison(reflect.ValueOf(&bad).Elem(), hostile)
	return hostilePage{parsed(t, write, made()), parsed(t, write, bad), links}
}

// Servers, users and other programs write strings of reports. Whatever they contain, they make no
// element, run nothing, and lead nowhere else.
func TestHostileStringsStayText(t *testing.T) {
	for name, page := range map[string]hostilePage{
		"run":          hostilePageOf(t, WriteHTML, small, JSONFile, JUnitFile),
		"campaign":     hostilePageOf(t, WriteCampaignHTML, smallCampaign, CampaignJSON),
		"conformance":  hostilePageOf(t, WriteConformanceHTML, smallConformance),
		"comparison":   hostilePageOf(t, writePageOf, smallComparison, "nothing"),
		"matrix":       hostilePageOf(t, asHTML[VersionMatrix], smallMatrix),
		"clients":      hostilePageOf(t, asHTML[ClientsTable], smallClients),
		"upstream-e2e": hostilePageOf(t, asHTML[UpstreamTests], upstreamStory),
		"ablation":     hostilePageOf(t, asHTML[*Ablation], smallAblation),
		"smallest set": hostilePageOf(t, asHTML[*Smallest], smallestForTests),
	} {
		t.Run(name, func(t *testing.T) {
			staysText(t, page.honest, page.poisoned)
			for _, n := range slices.Concat(elements(page.honest, "a"), elements(page.poisoned, "a")) {
				for _, a := range n.Attr {
					if a.Key == "href" && !strings.HasPrefix(a.Val, "#") && page.links != nil && !slices.Contains(page.links, a.Val) {
						t.Errorf("a link leads to %q", a.Val)
					}
				}
			}
		})
	}
}

package reports

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/skewproof/skewproof/internal/invariant"
)

// page is a report of tables and lists. A terminal, Markdown and HTML show the same tables and
// lists. The fields after Sections are for HTML only, except what tells a build from others of its
// version.
type page struct {
	Title, Lead string
	// Outcome gives the verdict its sign and its colour. If it is empty, there is no verdict. Word
	// is the word of the verdict; empty stands for that of the outcome.
	Outcome  invariant.Outcome
	Word     string
	Sentence string
	Notes    []string
	Sections []section
	// Facts are names with their values.
	Facts [][2]string
	Tested
	// Reproduce is the command line that makes the report again. It is empty if there is none.
	Reproduce        string
	SkewproofVersion string
	// Document is the file with the same for programs. It is empty if there is none.
	Document string
	TypeMeta
	// JUnit has the test cases. It is nil if there are none.
	JUnit *JUnitSuite
}

// section is a part of a page. A section without a heading goes on with the one before it.
type section struct {
	Heading string
	// Folded is the line to which Markdown and HTML fold the section; empty if they show it. It
	// must have no text from elsewhere, because Markdown does not escape it.
	Folded     string
	Note       string
	Table      *table
	List       []item
	*described // in HTML
}

// table has a head for each column. The first column has the names of the rows.
type table struct {
	Head []column
	Rows [][]tableCell
}

// column is the head of a column.
type column struct {
	Name string
	// Number is true if the cells are numbers.
	Number bool
	// Narrow is true for one of many narrow columns. HTML turns its head, and a terminal shows a
	// letter for it.
	Narrow bool
}

// tableCell is a cell. The other fields are for HTML, and may be empty: Outcome gives it a colour,
// Link is where it leads, and Says is what a reader hears who does not see a sign.
type tableCell struct {
	Text    string
	Outcome invariant.Outcome
	Link    string
	Says    string
}

// item is an item of a list. Note is a second line, and Link is where the item leads in HTML. Both
// may be empty.
type item struct{ Text, Note, Link string }

// heads are columns of words.
func heads(names ...string) (all []column) {
	for _, name := range names {
		all = append(all, column{Name: name})
	}
	return all
}

// add adds a row of cells without colours.
func (t *table) add(texts ...string) {
	var row []tableCell
	for _, text := range texts {
		row = append(row, tableCell{Text: text})
	}
	t.Rows = append(t.Rows, row)
}

// items are items of a list that are one line each.
func items(texts []string) (all []item) {
	for _, text := range texts {
		all = append(all, item{Text: text})
	}
	return all
}

// Name names a section for a reader who does not see it.
func (s section) Name() string { return cmp.Or(s.Heading, s.Folded, "table") }

var (
	tablePage = newPage("table/", "table")
	tableHead = newHead(nil, "table/table.css")
)

// Says is the word of the verdict.
func (p page) Says() string { return cmp.Or(p.Word, Word(p.Outcome)) }

// html writes the page as one self-contained page without scripts, like [WriteHTML].
func (p page) html(w io.Writer) error {
	links := newDescribed()
	for n := range p.Sections {
		p.Sections[n].described = links
	}
	return writePage(w, tablePage, struct {
		page
		head
		*described
	}{p, tableHead, links})
}

// text writes the page for a terminal.
func (p page) text(w io.Writer, opts SummaryOptions) error {
	t := &terminal{SummaryOptions: opts, columns: Columns(w)}
	if p.Outcome != "" {
		t.headed(p.Outcome, p.Says(), p.Sentence)
	}
	for _, note := range p.Notes {
		fmt.Fprintf(t, "%s\n\n", plain(note))
	}
	p.summarize(t)
	t.WriteString(Wrapped("", plain(p.Lead), t.columns))
	for _, s := range p.Sections {
		if err := s.text(t); err != nil {
			return err
		}
	}
	return t.end(w, strings.TrimSuffix(p.Document, ".json")+".html", p.Document)
}

func (s section) text(t *terminal) error {
	fmt.Fprintln(t)
	if heading := cmp.Or(s.Heading, s.Folded); heading != "" {
		fmt.Fprintln(t, plain(heading))
	}
	if s.Note != "" {
		t.WriteString(Wrapped("", plain(s.Note), t.columns))
	}
	if s.Table != nil {
		columns := tabwriter.NewWriter(t, 0, 0, 2, ' ', 0)
		rows, letters := s.Table.all(), 0
		for n, c := range s.Table.Head {
			if c.Narrow {
				rows[0][n] = letter(letters)
				fmt.Fprintf(t, "  %s  %s\n", rows[0][n], plain(c.Name))
				letters++
			}
		}
		for _, row := range rows {
			fmt.Fprintln(columns, strings.Join(mapped(row, plain), "\t"))
		}
		if err := columns.Flush(); err != nil {
			return err
		}
	}
	for _, i := range s.List {
		t.WriteString(Wrapped("- ", plain(i.Text), t.columns))
		if i.Note != "" {
			fmt.Fprintf(t, "  %s\n", plain(i.Note))
		}
	}
	return nil
}

// all are the texts of the table, the heads first.
func (t table) all() [][]string {
	rows := make([][]string, 1+len(t.Rows))
	for _, c := range t.Head {
		rows[0] = append(rows[0], c.Name)
	}
	for n, row := range t.Rows {
		for _, c := range row {
			rows[n+1] = append(rows[n+1], c.Text)
		}
	}
	return rows
}

// letter stands for a column: a to z, then A to Z, then aa, ab and so on.
func letter(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	last := letters[n%len(letters) : n%len(letters)+1]
	if n < len(letters) {
		return last
	}
	return letter(n/len(letters)-1) + last
}

func mapped(texts []string, change func(string) string) []string {
	all := make([]string, len(texts))
	for n, text := range texts {
		all[n] = change(text)
	}
	return all
}

// markdown is the page for a comment or a document.
func (p page) markdown() string {
	var b strings.Builder
	if p.Outcome == "" {
		fmt.Fprintf(&b, "# %s\n\n", inMarkdown(p.Title))
	} else {
		fmt.Fprintf(&b, "**%s** %s\n\n", sign(p.Outcome), inMarkdown(p.Sentence))
	}
	for _, note := range p.Notes {
		b.WriteString(filled("", inMarkdown(note)) + "\n")
	}
	b.WriteString(filled("", inMarkdown(p.Lead)))
	for _, s := range p.Sections {
		b.WriteString(s.markdown())
	}
	return b.String()
}

func (s section) markdown() string {
	var b strings.Builder
	if s.Heading != "" {
		fmt.Fprintf(&b, "\n## %s\n", inMarkdown(s.Heading))
	}
	if s.Folded != "" {
		fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n", inMarkdown(s.Folded))
	}
	if s.Note != "" {
		b.WriteString("\n" + filled("", inMarkdown(s.Note)))
	}
	if s.Table != nil {
		b.WriteString("\n")
		for n, row := range s.Table.all() {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(mapped(row, inMarkdown), " | "))
			if n == 0 {
				for _, c := range s.Table.Head {
					b.WriteString(map[bool]string{false: "|---", true: "|---:"}[c.Number])
				}
				b.WriteString("|\n")
			}
		}
	}
	if len(s.List) > 0 {
		b.WriteString("\n")
	}
	for _, i := range s.List {
		b.WriteString(filled("- ", inMarkdown(i.Text)))
		if i.Note != "" {
			b.WriteString(filled("  ", inMarkdown(i.Note)))
		}
	}
	if s.Folded != "" {
		b.WriteString("\n</details>\n")
	}
	return b.String()
}

// inMarkdown escapes a text, so that it stays text and mentions no user. Servers write some of the
// texts.
func inMarkdown(s string) string {
	return strings.NewReplacer("@", "@\u200b", "!", `\!`).Replace(markdownText(s))
}

// Tables is a document that is shown as tables: a version matrix, what clients can do, the results
// of Kubernetes' tests, an ablation, or a smallest set of changes.
type Tables interface {
	page() page
}

// SaveTables writes a document into dir as JSON, text, Markdown and HTML, and as [JUnitFile] if it
// has test cases. It makes dir if dir does not exist. It is as atomic as [WriteAll].
func SaveTables(dir string, d Tables) error {
	p := d.page()
	name := strings.TrimSuffix(p.Document, ".json")
	forms := []rendering[Tables]{
		{name + ".txt", func(w io.Writer, _ Tables) error { return p.text(w, SummaryOptions{}) }},
		{name + ".md", func(w io.Writer, _ Tables) error { _, err := io.WriteString(w, p.markdown()); return err }},
		{name + ".html", func(w io.Writer, _ Tables) error { return p.html(w) }},
		{p.Document, writeIndented[Tables]},
	}
	if p.JUnit != nil {
		forms = append(forms, rendering[Tables]{JUnitFile, func(w io.Writer, _ Tables) error { return p.JUnit.write(w) }})
	}
	return save(dir, d, forms)
}

// WriteTables writes a document for a terminal.
func WriteTables(w io.Writer, d Tables, opts SummaryOptions) error { return d.page().text(w, opts) }

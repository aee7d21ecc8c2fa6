package pages

import (
	_ "embed"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

//go:embed testdata/chart.js
var chartState string

// chart is what the first chart of a run shows.
type chart struct {
	Focused          bool     // its region has the keyboard
	Left, Top, Width float64  // the part of it that is in the window
	Bars             int      // that are shown
	Drawn            string   // the places of all bars
	First            float64  // the place of the first bar that is shown
	Outside          int      // bars beyond the axes
	Ticks            []string // the times on the axis
	Crosshair, Brush bool
	Readout          string
	Buttons          int
	Mark             []float64 // where a violation is marked
	Leads, Hash      string    // where the mark leads, and where the reader is
}

// user is a person with a mouse and a keyboard before a page.
type user struct{ *tab }

func (u user) sees() chart {
	u.t.Helper()
	return evaluate[chart](u.tab, chartState)
}

func (u user) press(keys ...string) chart {
	u.t.Helper()
	for _, key := range keys {
		u.do(chromedp.KeyEvent(key))
	}
	return u.sees()
}

// moves moves the mouse to a part of the chart's width.
func (u user) moves(part float64, events ...input.DispatchMouseEventType) chart {
	u.t.Helper()
	c := u.sees()
	for _, event := range append([]input.DispatchMouseEventType{input.DispatchMouseEventTypeMouseMoved}, events...) {
		u.do(chromedp.MouseEvent(event, c.Left+c.Width*part, c.Top+40, chromedp.ButtonLeft))
	}
	return u.sees()
}

// The charts can be zoomed by keys, buttons and brush, the crosshair tells the answers, and marks
// lead to their violations.
func TestChartsCanBeZoomed(t *testing.T) {
	file, err := filepath.Abs("../../reports/testdata/report.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{wide, narrow} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			p := newTab(t)
			p.show(file, view{width: width, scripts: true})
			zoom(t, user{p})
			if console, requests := p.heard(); len(console)+len(requests) > 0 {
				t.Errorf("the page said %q and asked for %q", console, requests)
			}
		})
	}
}

func zoom(t *testing.T, u user) {
	holds := func(what string, c chart, ok bool) {
		t.Helper()
		if !ok {
			t.Errorf("%s: the chart shows %+v", what, c)
		}
	}
	whole := u.sees()
	for n := 0; n < 100 && !u.sees().Focused; n++ {
		u.press(kb.Tab)
	}
	c := u.press(kb.ArrowRight)
	holds("the keyboard reaches it, and it has buttons", c, c.Focused && c.Buttons >= 5 && c.Bars > 1)
	holds("the arrows do not move a whole chart", c, c.Drawn == whole.Drawn)

	near := u.press("+", "+")
	holds("+ shows fewer bars", near, near.Bars < whole.Bars && near.Bars > 0 && near.Outside == 0 && len(near.Ticks) <= 11)
	c = u.press(kb.ArrowRight)
	holds("an arrow moves it", c, c.Drawn != near.Drawn && c.Outside == 0)
	c = u.press(kb.ArrowLeft)
	holds("the other arrow moves it back", c, math.Abs(c.First-near.First) < 0.01)
	c = u.press("-")
	holds("- shows more", c, c.Bars >= near.Bars && c.Drawn != near.Drawn)
	c = u.press("0")
	holds("0 shows the whole run", c, c.Drawn == whole.Drawn)
	c = u.press(strings.Split(strings.Repeat("+", 40), "")...)
	holds("it can be zoomed deep", c, len(c.Ticks) > 0 && len(c.Ticks) <= 11)
	u.press("0")

	evaluate[chromedp.Void](u.tab, `document.querySelector("svg.chart").scrollIntoView()`)
	c = u.moves(0.5)
	holds("the mouse has a crosshair", c, c.Crosshair && strings.Contains(c.Readout, " · b: "))
	u.moves(0.5, input.DispatchMouseEventTypeMousePressed)
	c = u.moves(0.7)
	holds("dragging shows the stretch", c, c.Brush)
	c = u.moves(0.7, input.DispatchMouseEventTypeMouseReleased)
	holds("letting go zooms to it", c, c.Bars < whole.Bars && !c.Brush)
	u.do(chromedp.Click[chromedp.CSS](`.toolbar button[aria-label="Whole run"]`))
	c = u.sees()
	holds("a button shows the whole run", c, c.Drawn == whole.Drawn)
	u.moves(0.5)
	u.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 1, 1))
	c = u.sees()
	holds("the crosshair goes with the mouse", c, !c.Crosshair && c.Readout == "")

	if u.do(chromedp.ScrollIntoView(chromedp.CSS("svg.chart a polygon"))); !t.Failed() {
		c = u.sees()
		u.do(chromedp.MouseClickXY(c.Mark[0], c.Mark[1]))
		c = u.sees()
		holds("a mark leads to its violation", c, c.Leads != "" && c.Hash == c.Leads)
		if !evaluate[bool](u.tab, `document.querySelector(location.hash || "html").getBoundingClientRect().top < innerHeight`) {
			t.Errorf("the violation %s is not in the window", c.Hash)
		}
	}
}

package reports

import (
	"bytes"
	"context"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// behave opens the page in Chromium, runs a script in it, and returns what the script wrote with
// say(). The page's policy forbids foreign scripts, so the copy that is tested has none.
func behave(t *testing.T, page []byte, script string) string {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAll(page, nil)
	told := `<pre id="told"></pre><script>const say = (...w) => { document.getElementById("told").textContent += w.join(" ") + "\n"; };
addEventListener("error", (e) => say("error:", e.message));
try { ` + script + ` } catch (e) { say("threw:", e.stack); }</script></body>`
	page = bytes.Replace(page, []byte("</body>"), []byte(told), 1)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dom, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(), "--window-size=1400,1000", "--dump-dom",
		"file://"+file).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	_, after, ok := strings.Cut(string(dom), `<pre id="told">`)
	if !ok {
		t.Fatal("the page's script did not finish")
	}
	out, _, _ := strings.Cut(after, "</pre>")
	return html.UnescapeString(out)
}

const zoomScript = `
const region = document.querySelector(".scroll:has(svg.chart)"), svg = region.querySelector("svg");
const key = (k) => region.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true, cancelable: true }));
const bars = () => [...svg.querySelectorAll(".bar rect")].filter((r) => r.getAttribute("visibility") !== "hidden").length;
const marks = () => [...svg.querySelectorAll("a polygon")].filter((r) => r.getAttribute("visibility") !== "hidden").length;
const ticks = () => [...svg.querySelectorAll("text.axis")].filter((r) => r.getAttribute("visibility") !== "hidden").map((t) => t.textContent);
const x = () => [...svg.querySelectorAll(".bar rect")].map((r) => r.getAttribute("x") + "/" + r.getAttribute("width")).join();
const before = x(), all = bars();
say("focusable", region.tabIndex, "buttons", document.querySelectorAll(".toolbar button").length);
say("left alone", key("ArrowRight") ? "yes" : "no", x() === before);
key("+"); key("+");
say("fewer bars", bars() < all, bars() > 0, "ticks", ticks()[0], ticks().length <= 11);
const zoomed = x();
key("ArrowRight");
say("panned", x() !== zoomed);
key("ArrowLeft");
say("and back", Math.abs(parseFloat(x()) - parseFloat(zoomed)) < 0.01);
for (const r of svg.querySelectorAll(".bar rect")) {
  if (r.getAttribute("visibility") === "hidden") continue;
  const a = parseFloat(r.getAttribute("x")), w = parseFloat(r.getAttribute("width"));
  if (a < 91.9 || a + w > 1145.1) say("outside", a, w);
}
key("0");
say("whole again", bars() === all, x() === before);
for (let n = 0; n < 40; n++) key("+");
say("deep", ticks().length > 0, ticks().length <= 11);
key("0");
const box = svg.getBoundingClientRect(), point = (type, part) => svg.dispatchEvent(new PointerEvent(type, { clientX: box.left + box.width * part, clientY: box.top + 40, button: 0, pointerType: "mouse", bubbles: true, cancelable: true }));
point("pointermove", 0.5);
say("crosshair", svg.querySelector(".crosshair").getAttribute("visibility") === null, document.querySelector(".readout").textContent);
point("pointerdown", 0.5); point("pointermove", 0.7);
say("brush", svg.querySelector(".brush").getAttribute("visibility") === null);
point("pointerup", 0.7);
say("brushed", bars() < all, svg.querySelector(".brush").getAttribute("visibility"));
document.querySelector(".toolbar button[aria-label='Whole run']").click();
say("button", bars() === all);
point("pointerleave", 0);
say("gone", svg.querySelector(".crosshair").getAttribute("visibility"));
say("marks", marks() > 0, [...svg.querySelectorAll("a")].every((a) => document.querySelector(a.getAttribute("href"))));
`

// The charts can be zoomed by keys, buttons and brush, and the crosshair says what was answered.
func TestChartsCanBeZoomed(t *testing.T) {
	var page bytes.Buffer
	if err := WriteHTML(&page, small()); err != nil {
		t.Fatal(err)
	}
	got := behave(t, page.Bytes(), zoomScript)
	for _, want := range []string{
		"focusable 0 buttons 10\n", "left alone yes true\n", "fewer bars true true ticks ", "panned true\n", "and back true\n",
		"whole again true true\n",
		"deep true true\n", "crosshair true ", " · b: ", "brush true\n", "brushed true hidden\n", "button true\n", "gone hidden\n",
		"marks true true\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() || strings.Contains(got, "outside") || strings.Contains(got, "error:") || strings.Contains(got, "threw:") {
		t.Errorf("in the browser:\n%s", got)
	}
}

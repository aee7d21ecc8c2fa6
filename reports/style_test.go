package reports

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestContrast checks WCAG 2.2, 1.4.3 (text, 4.5:1) and 1.4.11 (graphics, 3:1) in both colour
// schemes.
func TestContrast(t *testing.T) {
	style, err := assets.ReadFile("assets/report.css")
	if err != nil {
		t.Fatal(err)
	}
	light, rest, _ := strings.Cut(string(style), "@media (prefers-color-scheme: dark)")
	dark, _, _ := strings.Cut(rest, "* { box-sizing")
	for name, block := range map[string]string{"light": light, "dark": dark} {
		colors := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{3,8});`).FindAllStringSubmatch(block, -1) {
			colors[m[1]] = m[2]
		}
		for _, c := range []struct {
			front, back string
			least       float64
		}{
			{"text", "page", 4.5}, {"muted", "page", 4.5}, {"link", "page", 4.5}, {"text", "surface", 4.5},
			{"pass", "pass-soft", 4.5}, {"fail", "fail-soft", 4.5}, {"unsure", "unsure-soft", 4.5},
			{"text", "fail-soft", 4.5}, {"link", "fail-soft", 4.5}, {"text", "pass-soft", 4.5}, {"text", "unsure-soft", 4.5},
			{"fail", "page", 4.5}, {"on-version", "down", 4.5}, {"on-version", "fail-soft", 4.5},
			{"on-version", "v0", 4.5}, {"on-version", "v1", 4.5}, {"on-version", "v2", 4.5}, {"on-version", "v3", 4.5}, {"on-version", "v4", 4.5},
			{"missing-resource", "page", 3}, {"server-error", "page", 3}, {"no-response", "page", 3}, {"fault-bar", "page", 3},
			{"unavailable-on", "unavailable", 3}, {"no-response-on", "no-response", 3},
		} {
			t.Run(name+" "+c.front+" on "+c.back, func(t *testing.T) {
				if got := contrast(t, colors[c.front], colors[c.back]); got < c.least {
					t.Errorf("%s on %s has a contrast of %.2f, want at least %.1f", colors[c.front], colors[c.back], got, c.least)
				}
			})
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	la, lb := luminance(t, a), luminance(t, b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	hex := strings.TrimPrefix(color, "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	if len(hex) != 6 {
		t.Fatalf("%q is not an opaque colour", color)
	}
	sum := 0.0
	for n, weight := range []float64{0.2126, 0.7152, 0.0722} {
		channel, err := strconv.ParseUint(hex[2*n:2*n+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(channel) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

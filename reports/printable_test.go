package reports

import "testing"

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb\tc":                "a\nb\tc",
		"\x1b[31mred\x1b[0m":     " [31mred [0m",
		"a\rb\x00c\x7fd\u009be":  "a b c d e",
		"a\u202eb\u2066c\u200fd": "abcd",
		"a\u2028b\u2029c":        "a b c",
		"Grüße, 世界":              "Grüße, 世界",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
		if again := Printable(want); again != want {
			t.Errorf("%q becomes %q", want, again)
		}
	}
	if got := plain("a\nb\tc\r\x1b[31m\u202ed"); got != "a b c  [31md" {
		t.Errorf("in one line it is %q", got)
	}
}

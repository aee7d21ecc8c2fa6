package reports

import "testing"

// No two columns have one letter.
func TestLettersOfColumns(t *testing.T) {
	seen := map[string]bool{}
	for n := range 4000 {
		if l := letter(n); seen[l] {
			t.Fatalf("column %d has the letter %q of another one", n, l)
		} else {
			seen[l] = true
		}
	}
	if a, z, aa := letter(0), letter(51), letter(52); a != "a" || z != "Z" || aa != "aa" {
		t.Errorf("letters %q, %q, %q", a, z, aa)
	}
}

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func reported(t *testing.T, statuses ...string) report {
	t.Helper()
	var r report
	mutations := `{"status":"` + strings.Join(statuses, `"},{"status":"`) + `"}`
	if err := json.Unmarshal([]byte(`{"files":[{"file_name":"a.go","mutations":[`+mutations+`]}]}`), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRowCountsEveryStatus(t *testing.T) {
	r := row{Package: "p", Took: 61400 * time.Millisecond, Day: "2026-01-02"}
	if err := r.add(reported(t, "KILLED", "KILLED", "KILLED", "LIVED", "TIMED OUT", "NOT COVERED", "NOT COVERED", "NOT VIABLE")); err != nil {
		t.Fatal(err)
	}
	if want := "| `p` | 7 | 3 | 1 | 1 | 2 | 75.0 % | 1m1s | 2026-01-02 |\n"; r.String() != want {
		t.Errorf("got %swant %s", r, want)
	}
}

// Of a sample, the row says how many mutants were tested, and of how many.
func TestRowOfASample(t *testing.T) {
	r := row{Package: "p", Took: time.Minute, Day: "2026-01-02", LeftOut: 3}
	if err := r.add(reported(t, "KILLED", "LIVED", "TIMED OUT", "NOT COVERED", "NOT VIABLE", "NOT VIABLE", "NOT VIABLE", "NOT VIABLE")); err != nil {
		t.Fatal(err)
	}
	if want := "| `p` | 3 of 7 | 1 | 1 | 1 | 1 | 50.0 % | 1m0s | 2026-01-02 |\n"; r.String() != want || r.NotViable != 1 {
		t.Errorf("%d are not viable; got %swant %s", r.NotViable, r, want)
	}
}

// A run that tested nothing must not look like one in which nothing survived.
func TestRowRefuses(t *testing.T) {
	for name, statuses := range map[string][]string{"what is not known": {"KILLED", "RUNNABLE"}, "nothing that was tested": {"NOT COVERED", "TIMED OUT"}} {
		if err := new(row).add(reported(t, statuses...)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRowsOfOtherPackagesStay(t *testing.T) {
	page := "# Page\n\n" + heading + "| `b` | old |\n| `d` | old |\n\nText.\n"
	after, err := replaceRows(page, []row{{Package: "d", Killed: 1}, {Package: "a", Killed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string) string { return "| `" + name + "` | 0 | 1 | 0 | 0 | 0 | 100.0 % | 0s |  |\n" }
	if want := "# Page\n\n" + heading + row("a") + "| `b` | old |\n" + row("d") + "\nText.\n"; after != want {
		t.Errorf("got\n%s\nwant\n%s", after, want)
	}
	if _, err := replaceRows("no table\n", nil); err == nil {
		t.Error("a page without the table: no error")
	}
}

func TestQuickTestsAreThoseThatPassedQuickly(t *testing.T) {
	got, err := quick("=== RUN   TestA\n--- PASS: TestA (0.01s)\n    --- PASS: TestA/part (0.00s)\n--- PASS: TestSlow (0.31s)\n--- SKIP: TestB (0.00s)\nPASS\n")
	if want := "^(TestA|TestB)$"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := quick("--- PASS: TestSlow (0.31s)\n"); err == nil {
		t.Error("only slow tests: no error")
	}
}

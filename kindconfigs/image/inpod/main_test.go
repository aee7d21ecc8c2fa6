package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		args    []string
		in, out string
		code    int
	}{
		{args: []string{"echo", "two words", ""}, in: "input\n", out: "two words\n\ninput\n"},
		{args: []string{"echo"}, in: "\x00\xff", out: "\x00\xff"},
		{args: []string{"exit", "0"}},
		{args: []string{"exit", "255"}, code: 255},
		{args: []string{"work", "1ns"}, out: "line 1\n"},
		{args: []string{"exit", "256"}, code: exitUsage},
		{args: []string{"exit"}, code: exitUsage},
		{args: []string{"work", "long"}, code: exitUsage},
		{args: []string{"work"}, code: exitUsage},
		{args: []string{"ask"}, code: exitUsage},
		{args: []string{"sh", "-c", "true"}, code: exitUsage},
	} {
		var out bytes.Buffer
		code, err := run(t.Context(), c.args, strings.NewReader(c.in), &out)
		if code != c.code || out.String() != c.out || (err != nil) != (code == exitUsage) {
			t.Errorf("%q: code %d, output %q, error %v; want code %d, output %q", c.args, code, &out, err, c.code, c.out)
		}
	}
}

// The numbers show a reader of the log whether a line is missing.
func TestLinesAreNumberedUntilToldToStop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code, _ := run(ctx, nil, nil, w)
		_ = w.Close()
		ended <- code
	}()
	read := bufio.NewScanner(r)
	for _, want := range []string{"line 1", "line 2", "line 3"} {
		if !read.Scan() || read.Text() != want {
			t.Fatalf("%q, error %v; want %q", read.Text(), read.Err(), want)
		}
	}
	stop()
	for read.Scan() { // a line may have been under way
	}
	if code := <-ended; code != 0 {
		t.Errorf("told to stop, it ends with %d", code)
	}
}

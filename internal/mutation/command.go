package main

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stateVariable names, in the environment of the go command that gremlins starts, the file that
// holds the state of the package under test.
const stateVariable = "SKEWPROOF_MUTATION_STATE"

// memory bounds the address space of a test binary: a mutant may allocate without end.
const memory = 8 << 30

// state is the information for the go command that gremlins starts.
type state struct {
	Go       string // the real go command
	Path     string // the search path without the one that gremlins gets
	Switched switched
	Binary   string // the switched test binary
	Quick    string // a pattern of the tests that end quickly; the others run after them
	Sample   int    // about how many mutants are tested; 0: all
}

func (s state) save(file string) error {
	var out bytes.Buffer
	if err := gob.NewEncoder(&out).Encode(s); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}

func loadState(file string) (state, error) {
	var s state
	data, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	return s, gob.NewDecoder(bytes.NewReader(data)).Decode(&s)
}

// Exit codes of go test as gremlins understands them.
const (
	exitKilled    = 1
	exitNotViable = 2
)

// standIn does what gremlins asks the go command for, and returns the exit code. gremlins runs
// three commands: 'go mod download', one 'go test' for the coverage, and one for every mutant, in a
// copy of the module in which one file has the mutant.
func standIn(args []string) (int, error) {
	s, err := loadState(os.Getenv(stateVariable))
	if err != nil {
		return 0, err
	}
	if err := os.Setenv("PATH", s.Path); err != nil {
		return 0, err
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil { // when gremlins ends
		return 0, err
	}
	switch {
	case slices.Contains(args, "-coverprofile"):
		// Packages below this one are measured by themselves.
		last := len(args) - 1
		args[last] = strings.TrimSuffix(args[last], "/...")
		code, err := run(s.Go, "", append([]string{"test", "-vet=off", "-count=1"}, args[1:]...)...)
		if err != nil || code != 0 {
			return code, err
		}
		return 0, coverCases(args[slices.Index(args, "-coverprofile")+1], s.Switched.Dir)
	case slices.Contains(args, "-failfast"):
		return s.judge(args)
	default:
		return run(s.Go, "", args...)
	}
}

// judge runs the tests against the mutant in the working directory.
func (s state) judge(args []string) (int, error) {
	binary, environment := s.Binary, ""
	found, err := s.find(".")
	number, has := s.Switched.Numbers[found]
	if err == nil && !s.samples(found) {
		return exitNotViable, leaveOut(os.Getenv(stateVariable)) // see row.add
	}
	switch {
	case err == nil && has && number == notViable:
		return exitNotViable, nil
	case err == nil && has:
		environment = fmt.Sprintf("%s=%d", variable, number)
	default: // neither is this mutant among the switches, nor can it be
		binary = filepath.Join(filepath.Dir(s.Binary), "mutant-"+strconv.Itoa(os.Getpid())+".test")
		defer func() { _ = os.Remove(binary) }()
		if code, err := run(s.Go, "", "test", "-c", "-vet=off", "-o", binary, "."); err != nil || code != 0 {
			return exitNotViable, err
		}
	}
	timeout := args[slices.Index(args, "-timeout")+1]
	for _, choice := range []string{"-test.run=", "-test.skip="} {
		code, err := run(binary, environment, choice+s.Quick, "-test.failfast", "-test.timeout="+timeout, "-test.paniconexit0")
		if err != nil {
			return 0, err
		}
		if code != 0 { // a panic's is 2
			return exitKilled, nil
		}
	}
	return 0, nil
}

// find returns the mutant in a copy of the package.
func (s state) find(copied string) (mutant, error) {
	for name, before := range s.Switched.Sources {
		after, err := os.ReadFile(filepath.Join(copied, name))
		if err != nil {
			return mutant{}, err
		}
		if before != string(after) {
			return difference(name, before, string(after))
		}
	}
	return mutant{}, fmt.Errorf("no file differs from those in %s", s.Switched.Dir)
}

// run starts a command and returns its exit code. The command dies with this process: gremlins
// kills only the go command when a mutant takes too long.
func run(name, environment string, args ...string) (int, error) {
	goruntime.LockOSThread() // Pdeathsig is about the thread that starts the command
	defer goruntime.UnlockOSThread()
	command := exec.Command(name, args...)
	if !strings.HasSuffix(name, ".test") { // the output of a mutant's tests is not read
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
	}
	if environment != "" {
		command.Env = append(os.Environ(), environment)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if strings.HasSuffix(name, ".test") {
		if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: memory, Max: memory}); err != nil {
			return 0, err
		}
	}
	err := command.Run()
	if command.ProcessState == nil {
		return 0, fmt.Errorf("run %s: %w", name, err)
	}
	if code := command.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return exitKilled, nil // by a signal
}

// quickest is the longest time of a test that is run before the others.
const quickest = 300 * time.Millisecond

var passed = regexp.MustCompile(`(?m)^--- (PASS|SKIP): (\w+) \(([0-9.]+)s\)$`)

// quick reads the output of a test binary with -test.v. It returns a pattern of the tests that
// ended quickly. It returns an error if a test failed.
func quick(output string) (string, error) {
	var names []string
	for _, match := range passed.FindAllStringSubmatch(output, -1) {
		if took, err := time.ParseDuration(match[3] + "s"); err == nil && took < quickest {
			names = append(names, match[2])
		}
	}
	if len(names) == 0 {
		return "", fmt.Errorf("no test ended within %s", quickest)
	}
	return "^(" + strings.Join(names, "|") + ")$", nil
}

// Package clients carries out what people do with kubectl and with client libraries, one operation
// at a time, and says of each whether it worked: by the program's exit code and output, and by the
// object as the newer server has it afterwards. It starts no cluster.
package clients

import (
	"context"
	"strings"
	"time"

	"github.com/skewproof/skewproof/reports"
)

// Operation is one task that people do with a client. In all words, inputs, truths and expected
// outputs, {name} stands for a name that only this operation of this client uses, for objects and,
// if there is one, for their namespace.
type Operation struct {
	reports.ClientOperation
	// Setup makes the objects of the operation, at the newer server itself, with kubectl of its
	// version. If it fails, the operation is not run.
	Setup []Command
	// Do is the operation. Its commands use the tested path.
	Do []Command
	// Truth is what the newer server must have afterwards.
	Truth []Truth
	// Stale is true if kubectl has a discovery cache from before the newer server was there.
	Stale bool
}

// Command is a command line of a client, and what must come of it.
type Command struct {
	// Words are those after the name of the program.
	Words []string
	// Object is sent to standard input; nil sends nothing.
	Object Object
	// Editor is the program, with arguments, that kubectl edit starts.
	Editor string
	// Code is the exit code that it must have. It does not count if Until is set.
	Code int
	// Says is what standard output and standard error must have in them.
	Says []string
	// Quiet is true if nothing may be on standard error.
	Quiet bool
	// Until ends the command as soon as standard output has this in it. It is for commands that never
	// end by themselves; empty for all others.
	Until string
	// Meanwhile has the arguments of a command of the newer server's kubectl. It runs there as soon
	// as standard output contains After, or at once if After is empty.
	Meanwhile []string
	After     string
}

// Truth is a field of an object at the newer server.
type Truth struct {
	// Resource is as kubectl takes it, with flags for a namespace behind it.
	Resource []string
	// Path is a JSONPath, and Want its value. Without a Path, the object must not exist.
	Path, Want string
}

// Invocation is one start of a client.
type Invocation struct {
	// Program is its name, such as "kubectl", and Version its version. Words are those after the name.
	Program, Version string
	Words            []string
	// Home is the directory that has the discovery cache.
	Home   string
	Input  string
	Editor string
	// Seen is called with all of standard output so far, never at the same time; true ends the client.
	// Nil is never called.
	Seen func(output string) (enough bool)
	// Limit is how long it may take before it is killed.
	Limit time.Duration
}

// Ended is how an invocation ended.
type Ended struct {
	Code            int
	Output, Problem string // standard output and standard error
	// Enough is true if Seen ended it, and TooLong if the limit did.
	Enough, TooLong bool
}

// Runner starts clients where the servers can be reached. An error says that it could not be
// started: then nothing is known of the servers. It must be safe for concurrent use.
type Runner interface {
	Run(ctx context.Context, i Invocation) (Ended, error)
}

// named replaces {name}.
func named(s, name string) string { return strings.ReplaceAll(s, "{name}", name) }

func allNamed(words []string, name string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = named(w, name)
	}
	return all
}

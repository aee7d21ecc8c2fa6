package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/shell"
	"github.com/skewproof/skewproof/internal/suite"
)

// The flags of commands that carry out runs are fields of a run.Spec. A flag that is not given
// leaves its field zero, whatever default the help shows. So a Spec says what was asked for, and
// run.Spec.Plan fills in the rest.

// registerRun declares the flags of every run.
func registerRun(flags *pflag.FlagSet, s *run.Spec) {
	flags.StringVar(&s.Backend, "backend", scenario.BackendLocal,
		"what the servers run on: local (real processes), kind (the nodes of a kind cluster), "+
			"sim (virtual time) or, for 'skewproof run', existing (servers that run already, which are only read)")
	flags.StringVar(&s.Subject, "subject", "", "whose Mixed Version Proxy is tested: builtin (the kube-apiserver's own), "+
		"reference (this project's, inside the kube-apiservers, which are built for it), none (switched off, the negative control) or, in sim only, "+
		"alpha (the design of 1.28 in every server). On existing: builtin or external, and without it what the servers' metrics say")
	show(flags, "subject", scenario.SubjectBuiltin)
	flags.BoolVar(&s.Strict, "strict", false, "let invariants beyond the KEP count as well")
	suite.RegisterKnown(flags, &s.Known)
	flags.StringVar(&s.From, "from", "", "the older kube-apiserver version")
	show(flags, "from", run.DefaultFrom)
	flags.StringVar(&s.To, "to", "", "the newer kube-apiserver version; the same as --from for a cluster of one version")
	show(flags, "to", run.DefaultTo)
	flags.IntVar(&s.Servers, "servers", 0, fmt.Sprintf("number of kube-apiservers: at most %d, in sim %d, on kind %d", local.MaxServers,
		run.MaxSimulated, kind.MaxServers))
	show(flags, "servers", strconv.Itoa(run.DefaultServers))
	flags.Var(seedFlag{&s.Seed}, "seed", "seed of the random choices of the load; in sim, of all random choices")
	show(flags, "seed", strconv.Itoa(run.DefaultSeed))
	flags.StringVar(&s.Out, "out", "", "directory for history, logs and reports (default _out/NAME-SUBJECT-TIME)")
	registerReal(flags, s, "")
	registerOwn(flags, s, "local and kind only")
}

// registerOwn declares the flags about the user's own flags for kube-apiservers. where says to
// which runs they apply.
func registerOwn(flags *pflag.FlagSet, s *run.Spec, where string) {
	flags.StringArrayVar(&s.APIServerFlags, "kube-apiserver-flag", nil,
		"a flag of your own for every kube-apiserver, as NAME=VALUE, or NAME to switch something on ("+where+"); may be repeated")
	flags.Var(textFlag{&s.RuntimeConfig}, "runtime-config",
		"the --runtime-config of every kube-apiserver; empty for the APIs that are on by default ("+where+")")
	show(flags, "runtime-config", "api/all=true")
}

// textFlag is the flag of a list that may be empty, and is optional. It joins the values of a
// repeated flag, as kube-apiserver does.
type textFlag struct{ text **string }

func (f textFlag) String() string {
	if f.text == nil || *f.text == nil {
		return ""
	}
	return **f.text
}

func (f textFlag) Set(word string) error {
	word = strings.Trim(f.String()+","+word, ",")
	*f.text = &word
	return nil
}

func (textFlag) Type() string { return "string" }

// registerReal declares the flags about the programs of real processes and about their load. If
// only is set, the help says that the flags are for that backend.
func registerReal(flags *pflag.FlagSet, s *run.Spec, only string) {
	if only != "" {
		only = " (" + only + " only)"
	}
	registerQPS(flags, s, only)
	flags.StringVar(&s.Etcd, "etcd", "", "etcd version, "+binaries.OldestEtcd+" or later"+only)
	show(flags, "etcd", binaries.DefaultEtcd)
	suite.RegisterBinaries(flags, s, only)
}

func registerQPS(flags *pflag.FlagSet, s *run.Spec, only string) {
	flags.Float64Var(&s.QPS, "qps", 0, "requests per second, over all servers"+only)
	show(flags, "qps", strconv.Itoa(run.DefaultQPS))
}

// registerParallel declares the flag for the number of parallel runs.
func registerParallel(flags *pflag.FlagSet, n *int) {
	flags.IntVar(n, "parallel", 1, "how many runs at a time; each needs a processor and 2 GB of memory or so")
}

// show makes the help show a default. The value of the flag stays zero if the flag is not given.
func show(flags *pflag.FlagSet, name, value string) { flags.Lookup(name).DefValue = value }

// seedFlag is the flag of a seed. The seed may be any number, and the flag is optional.
type seedFlag struct{ seed **uint64 }

func (f seedFlag) String() string {
	if f.seed == nil || *f.seed == nil {
		return ""
	}
	return strconv.FormatUint(**f.seed, 10)
}

func (f seedFlag) Set(word string) error {
	seed, err := strconv.ParseUint(word, 0, 64)
	*f.seed = &seed
	return err
}

func (seedFlag) Type() string { return "uint64" }

// checkGiven refuses explicit zeros, because in a Spec a zero means the default.
func checkGiven(flags *pflag.FlagSet, s run.Spec) error {
	if flags.Changed("parallel") {
		if n, _ := flags.GetInt("parallel"); n < 1 {
			return usage("--parallel %d: want at least 1", n)
		}
	}
	for _, name := range []string{"subject", "from", "to", "etcd", "servers", "qps"} {
		f := flags.Lookup(name)
		if f == nil || !f.Changed || f.Value.String() == f.DefValue || f.Value.String() != "" && f.Value.String() != "0" {
			continue
		}
		if err := s.Refuses(name); err != nil {
			return err
		}
		switch name {
		case "qps":
			return run.CheckQPS(s.QPS)
		case "servers":
			return usage("--servers 0: want a number above 0")
		default:
			return usage("--%s is empty; leave it out for the default, %s", name, f.DefValue)
		}
	}
	return nil
}

// givenWords returns the flags that were given, as on the command line, without the output
// directory.
func givenWords(flags *pflag.FlagSet) string {
	var words strings.Builder
	flags.Visit(func(f *pflag.Flag) {
		if f.Name == "out" {
			return
		}
		value := f.Value.String()
		if s, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(s.GetSlice(), ",")
		}
		fmt.Fprintf(&words, " --%s=%s", f.Name, shell.Quote(value))
	})
	return words.String()
}

// flagError describes a wrong flag in words for people rather than for programmers, and says where
// to read more.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid))
	}
	return usage("%w; '%s --help' shows the flags", err, cmd.CommandPath())
}

// wanted says which values a flag takes, or returns the flag's own error.
func wanted(invalid *pflag.InvalidValueError) string {
	switch invalid.GetFlag().Value.Type() {
	case "int":
		return "want a whole number"
	case "uint64":
		return "want a whole number, 0 or more"
	case "float64":
		return "want a number"
	case "duration":
		return "want a time such as 30s or 5m"
	case "bool":
		return "want true or false"
	}
	said := strings.TrimPrefix(invalid.Unwrap().Error(), binaries.ErrBadRef.Error()+": ")
	return strings.TrimPrefix(said, strconv.Quote(invalid.GetValue())+": ")
}

// unknownCommand is cobra's error of that name, with suggestions of similar commands.
func unknownCommand(root *cobra.Command, err error) error {
	problem, _, _ := strings.Cut(err.Error(), " for ")
	word, unquoted := strconv.Unquote(strings.TrimPrefix(problem, "unknown command "))
	if likely := root.SuggestionsFor(word); unquoted == nil && len(likely) > 0 {
		problem += ": did you mean " + strings.Join(likely, " or ") + "?"
	} else {
		problem += ":"
	}
	return fmt.Errorf("%s '%s --help' lists the commands", problem, root.CommandPath())
}

// strictHelp makes 'help' about a command that does not exist wrong usage.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil { // cannot happen, because InitDefaultHelpCmd made the command
		panic(err)
	}
	help.Args = func(_ *cobra.Command, words []string) error {
		if _, _, err := root.Find(words); err != nil {
			return &exitError{code: exitUsage, err: unknownCommand(root, err)}
		}
		return nil
	}
}

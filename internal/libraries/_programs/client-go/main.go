// Program client-go does what programs do that use client-go, and says what came of it. It is built
// with one released version of client-go after the other:
//
//	client-go --context CONTEXT OPERATION [WORD…]
//
// The kubeconfig is that of $KUBECONFIG. Exit code 1 says that the operation failed; standard error
// then has the reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
)

// operation does one thing with a client of the configuration. words are those after its name.
type operation struct {
	words string // what it takes, for the error
	do    func(ctx context.Context, config *rest.Config, words []string) error
}

var operations = map[string]operation{
	"discovery":        {"", discover},
	"legacy-discovery": {"", discoverLegacy},
	"map":              {"KIND.VERSION.GROUP", mapKind},
	"write":            {"RESOURCE.VERSION.GROUP NAME, and an object on standard input", write},
	"apply":            {"RESOURCE.VERSION.GROUP NAME, and an object on standard input", apply},
	"delete":           {"RESOURCE.VERSION.GROUP NAME", remove},
	"inform":           {"RESOURCE.VERSION.GROUP NAME EVENT", inform},
	"metadata":         {"RESOURCE.VERSION.GROUP NAME EVENT", informMetadata},
	"typed":            {"NAMESPACE NAME", typed},
	"inform-typed":     {"NAMESPACE NAME EVENT", informTyped},
}

func run(ctx context.Context, words []string) error {
	flags := flag.NewFlagSet("client-go", flag.ContinueOnError)
	version := flags.Bool("version", false, "print the version of client-go")
	name := flags.String("context", "", "the context of the kubeconfig")
	if err := flags.Parse(words); err != nil {
		return err
	}
	if *version {
		return printVersion("client-go", "k8s.io/client-go")
	}
	if flags.NArg() == 0 {
		return errors.New("which operation? write client-go --context CONTEXT OPERATION [WORD…]")
	}
	o, ok := operations[flags.Arg(0)]
	switch {
	case !ok:
		return fmt.Errorf("there is no operation %q", flags.Arg(0))
	case len(flags.Args()[1:]) != len(strings.Fields(strings.Split(o.words, ",")[0])):
		return fmt.Errorf("%s takes %s", flags.Arg(0), o.words)
	}
	config, err := through(*name)
	if err != nil {
		return err
	}
	return o.do(ctx, config, flags.Args()[1:])
}

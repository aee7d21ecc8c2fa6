// Program controller-runtime does what operators do: it runs a manager of controller-runtime with a
// cache and one controller, and says what came of it. It is built with one released version of
// controller-runtime after the other:
//
//	controller-runtime --context CONTEXT OPERATION KIND.VERSION.GROUP NAMESPACE NAME [WORD…]
//
// A namespace of "-" is none. The kubeconfig is that of $KUBECONFIG. Exit code 1 says that the
// operation failed; standard error then has the reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// about is the object that an operation is about.
type about struct {
	types.NamespacedName
	kind schema.GroupVersionKind
}

var operations = map[string]func(ctx context.Context, config *rest.Config, o about, words []string) error{
	"follow": follow, "reconcile": reconcile, "finish": finish,
}

func run(ctx context.Context, words []string) error {
	flags := flag.NewFlagSet("controller-runtime", flag.ContinueOnError)
	version := flags.Bool("version", false, "print the version of controller-runtime")
	name := flags.String("context", "", "the context of the kubeconfig")
	if err := flags.Parse(words); err != nil {
		return err
	}
	if *version {
		return printVersion("controller-runtime", "sigs.k8s.io/controller-runtime")
	}
	given := flags.Args()
	if len(given) < 4 {
		return errors.New("write controller-runtime --context CONTEXT OPERATION KIND.VERSION.GROUP NAMESPACE NAME [WORD…]")
	}
	do, ok := operations[given[0]]
	if !ok {
		return fmt.Errorf("there is no operation %q", given[0])
	}
	kind, _ := schema.ParseKindArg(given[1])
	if kind == nil {
		return fmt.Errorf("%q is no KIND.VERSION.GROUP", given[1])
	}
	o := about{types.NamespacedName{Namespace: given[2], Name: given[3]}, *kind}
	if o.Namespace == "-" {
		o.Namespace = ""
	}
	config, err := through(*name)
	if err != nil {
		return err
	}
	return do(ctx, config, o, given[4:])
}

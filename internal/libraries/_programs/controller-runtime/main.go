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
	"os"
	"os/signal"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const library = "sigs.k8s.io/controller-runtime"

// about is the object that an operation is about.
type about struct {
	types.NamespacedName
	kind schema.GroupVersionKind
}

var operations = map[string]func(ctx context.Context, config *rest.Config, o about, words []string) error{
	"follow": follow, "reconcile": reconcile, "finish": finish,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, words []string) error {
	flags := flag.NewFlagSet("controller-runtime", flag.ContinueOnError)
	version := flags.Bool("version", false, "print the version of controller-runtime")
	through := flags.String("context", "", "the context of the kubeconfig")
	if err := flags.Parse(words); err != nil {
		return err
	}
	if *version {
		return printVersion()
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
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: *through},
	).ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	return do(ctx, config, o, given[4:])
}

// printVersion prints the version that the program was really built with.
func printVersion() error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("the program does not know what it was built from")
	}
	for _, m := range info.Deps {
		if m.Path == library {
			fmt.Println("controller-runtime", m.Version)
			return nil
		}
	}
	return fmt.Errorf("the program was built without %s", library)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// state is a label by which it is seen which write came last.
const state = "skewproof.example/state"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// through is the configuration of a client that has a context of the kubeconfig.
func through(name string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: name},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

// printVersion prints the version of the library with which the program was really built.
func printVersion(name, library string) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("the program does not know what it was built from")
	}
	for _, m := range info.Deps {
		if m.Path == library {
			fmt.Println(name, m.Version)
			return nil
		}
	}
	return fmt.Errorf("the program was built without %s", library)
}

func labelled(o *unstructured.Unstructured, value string) *unstructured.Unstructured {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[state] = value
	o.SetLabels(labels)
	return o
}

func input() (*unstructured.Unstructured, error) {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return nil, err
	}
	o := new(unstructured.Unstructured)
	if err := o.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("read the object on standard input: %w", err)
	}
	return o, nil
}

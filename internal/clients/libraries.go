package clients

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/skewproof/skewproof/internal/binaries"
)

// by returns the same operation with another program. Its commands are those of package libraries.
func (o Operation) by(c binaries.Component) Operation { o.Program = string(c); return o }

// library is a command line of a program that uses a client library: the words after its name.
func library(line string, more ...string) Command {
	return Command{Words: append(strings.Fields(line), more...)}
}

// The resource that is only the newer server's, and its kind, as the programs take them.
const (
	bundleResource = "clustertrustbundles.v1.certificates.k8s.io"
	bundleKind     = "ClusterTrustBundle.v1.certificates.k8s.io"
)

// informs is a command with which a program reports the changes of an object by another client.
func informs(name, sentence, command string) Operation {
	watch := func(until string) Command {
		return library(command + " " + bundleResource + " {name} " + until).after("ADDED")
	}
	return crossing(name, sentence).setup(create(bundle("made"))).do(
		watch("UPDATED").meanwhile("label "+bundles+" {name} --overwrite "+labelled+"=labelled").says("UPDATED {name} labelled"),
		watch("DELETED").meanwhile("delete "+bundles+" {name}").says("ADDED {name} labelled", "DELETED {name} labelled"))
}

// clientGoOperations are what programs do with client-go. The clients of versions that do not know
// a kind reach it with the dynamic client.
func clientGoOperations() (all []Operation) {
	made := create(bundle("made"))
	for _, o := range []Operation{
		crossing("aggregated discovery", "The client lists the resource.").
			do(library("discovery").says("certificates.k8s.io/v1 clustertrustbundles\n")),
		crossing("discovery, one request for each group version", "The client lists the resource.").
			do(library("legacy-discovery").says("certificates.k8s.io/v1 clustertrustbundles\n")),
		crossing("RESTMapper", "The mapper maps the kind to its resource.").
			do(library("map " + bundleKind).says("certificates.k8s.io/v1 clustertrustbundles root")),
		crossing("dynamic client", "The client creates, gets, lists, updates and patches the object.").
			do(library("write " + bundleResource + " {name}").input(bundle("made")).says("written {name} patched")).truth(label("patched")),
		crossing("dynamic client, server-side apply", "The object is created, then changed.").
			do(library("apply "+bundleResource+" {name}").input(bundle("made")).says("state made", "state applied")).truth(label("applied")),
		crossing("dynamic client, watch and delete", "The object is gone, and the watch reports the deletion.").setup(made).
			do(library("delete " + bundleResource + " {name}").says("deleted {name}")).truth(gone(bundles, "{name}")),
		informs("dynamic informer", "The informer reports that another client creates, changes and deletes the object.", "inform"),
		informs("metadata informer", "The informer reports the same events, and reads only metadata.", "metadata"),
		row("typed client", "The client creates, gets, updates, patches, applies, lists and deletes a ConfigMap.").
			do(library("typed default {name}").says("written and deleted {name}")).truth(gone("configmaps", "{name}", "-n", "default")),
		row("typed informer", "The informer reports that a ConfigMap is deleted.").setup(create(settings)).
			do(library("inform-typed default {name} DELETED").after("ADDED").meanwhile("delete configmap -n default {name}").
				says("ADDED {name} made", "DELETED {name} made")),
	} {
		all = append(all, o.by(binaries.ClientGo))
	}
	return all
}

// clientNodeOperations are what programs in JavaScript do.
func clientNodeOperations() (all []Operation) {
	made := create(bundle("made"))
	for _, o := range []Operation{
		crossing("discovery in JavaScript, one request for each group version", "The client lists the resource.").
			do(library("discovery").says("certificates.k8s.io/v1 clustertrustbundles\n")),
		crossing("KubernetesObjectApi", "The client finds the resource by its kind, and creates, reads, lists, replaces and patches the object.").
			do(library("object {name}").input(bundle("made")).says("written {name} patched")).truth(label("patched")),
		crossing("KubernetesObjectApi, server-side apply", "The object is created, then changed.").
			do(library("apply {name}").input(bundle("made")).says("state made", "state applied")).truth(label("applied")),
		crossing("CustomObjectsApi", "The client creates, gets, lists, replaces and patches the object by the path of its resource.").
			do(library("custom " + bundleResource + " {name}").input(bundle("made")).says("written {name} patched")).truth(label("patched")),
		crossing("Watch and delete in JavaScript", "The object is gone, and the watch reports the deletion.").setup(made).
			do(library("delete " + bundleResource + " {name}").says("deleted {name}")).truth(gone(bundles, "{name}")),
		informs("informer in JavaScript", "The informer reports that another client creates, changes and deletes the object.", "inform"),
		row("CoreV1Api", "The client creates, reads, replaces, patches, lists and deletes a ConfigMap.").
			do(library("typed default {name}").says("written and deleted {name}")).truth(gone("configmaps", "{name}", "-n", "default")),
	} {
		all = append(all, o.by(binaries.ClientNode))
	}
	return all
}

// controlled is a kind whose objects a controller of controller-runtime reconciles.
type controlled struct {
	what string // in the names of operations
	row  func(name, sentence string) Operation
	// kind and namespace are as the program takes them; resource is as kubectl takes it.
	kind, namespace string
	resource        []string
	object          func(label string) Object
	// status is the status that the controller writes. path leads to the expected word in it.
	status     map[string]any
	path, want string
}

// These are the kinds of controllers: one that only the newer server serves, in a group version
// that both have, and one that both serve. No other controller changes their objects.
var controlledKinds = []controlled{
	{
		"a kind that only the newer server has", crossing, "DeviceTaintRule.v1.resource.k8s.io", "-",
		[]string{"devicetaintrules.resource.k8s.io", "{name}"}, taintRule,
		map[string]any{"conditions": []any{map[string]any{
			"type": "Witnessed", "status": "True", "reason": "Reconciled", "message": "by a controller",
			"lastTransitionTime": "2026-01-01T00:00:00Z",
		}}}, `{.status.conditions[0].type}`, "Witnessed",
	},
	{
		"a kind that both have", row, "Ingress.v1.networking.k8s.io", "default",
		[]string{"ingresses.networking.k8s.io", "{name}", "-n", "default"}, ingress,
		map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"hostname": "witness.skewproof.invalid"}}}},
		`{.status.loadBalancer.ingress[0].hostname}`, "witness.skewproof.invalid",
	},
}

// controllerRuntimeOperations are what operators do: a manager with a cache and a controller.
func controllerRuntimeOperations() (all []Operation) {
	for _, k := range controlledKinds {
		about := k.kind + " " + k.namespace + " {name}"
		resource := strings.Join(k.resource, " ")
		made := create(k.object("made"))
		status, err := json.Marshal(k.status)
		if err != nil {
			panic(fmt.Sprintf("the status for %s is not JSON: %v", k.kind, err)) // it is a constant
		}
		for _, o := range []Operation{
			k.row("controller follows "+k.what, "Another client creates, changes and deletes the object, and the controller's cache shows each step.").setup(made).
				do(library("follow "+about+" labelled").after("state made").
					meanwhile("label "+resource+" --overwrite "+labelled+"=labelled").says("state labelled"),
					library("follow "+about+" gone").after("state labelled").meanwhile("delete "+resource).says("state gone")),
			k.row("controller reconciles "+k.what, "The controller creates the object, applies a change and patches the status. Its cache shows both.").
				do(library("reconcile "+about, string(status)).input(k.object("made")).says("reconciled {name}")).
				truth([]Truth{{k.resource, labelPath, "applied"}, {k.resource, k.path, k.want}}),
			k.row("controller deletes an object of "+k.what, "The controller updates the object, then deletes it. Its cache no longer has the object.").setup(made).
				do(library("finish " + about).says("finished {name}")).truth(gone(k.resource...)),
		} {
			all = append(all, o.by(binaries.ControllerRuntime))
		}
	}
	return all
}

package clients

import (
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/reports"
)

// kubectl is a command line after "kubectl", that must succeed.
func kubectl(line string) Command { return Command{Words: strings.Fields(line)} }

func (c Command) input(o Object) Command        { c.Object = o; return c }
func (c Command) says(words ...string) Command  { c.Says = words; return c }
func (c Command) code(code int) Command         { c.Code = code; return c }
func (c Command) quiet() Command                { c.Quiet = true; return c }
func (c Command) editor(program string) Command { c.Editor = program; return c }
func (c Command) until(output string) Command   { c.Until = output; return c }
func (c Command) after(output string) Command   { c.After = output; return c }
func (c Command) meanwhile(line string) Command { c.Meanwhile = strings.Fields(line); return c }
func label(value string) []Truth                { return []Truth{{[]string{bundles, "{name}"}, labelPath, value}} }
func gone(resource ...string) []Truth           { return []Truth{{Resource: resource}} }
func create(o Object) Command                   { return kubectl("create -f -").input(o) }
func row(name, sentence string) Operation {
	return Operation{ClientOperation: reports.ClientOperation{Program: string(binaries.Kubectl), Name: name, Sentence: sentence}}
}
func (o Operation) setup(c ...Command) Operation { o.Setup = c; return o }
func (o Operation) do(c ...Command) Operation    { o.Do = c; return o }
func (o Operation) truth(t []Truth) Operation    { o.Truth = t; return o }
func (o Operation) controlled() Operation        { o.Controllers = true; return o }
func (o Operation) stale() Operation             { o.Stale = true; return o }

// crossing returns an operation on a resource that an older server does not have.
func crossing(name, sentence string) Operation {
	o := row(name, sentence)
	o.Crosses = true
	return o
}

const labelPath = `{.metadata.labels.skewproof\.example/state}`

// Operations are all operations, in the order in which they are shown. An object's name is free
// before its operation begins.
func Operations() []Operation {
	return slices.Concat(kubectlOperations(), clientGoOperations(), controllerRuntimeOperations(), clientNodeOperations())
}

// kubectlOperations are what people do with kubectl.
func kubectlOperations() []Operation {
	made := create(bundle("made"))
	return []Operation{
		crossing("get", "kubectl prints the object.").setup(made).
			do(kubectl("get " + bundles + " {name}").says("{name}")),
		crossing("get, in a namespace", "kubectl prints the object.").
			setup(kubectl("create namespace {name}"), create(request)).
			do(kubectl("get " + requests + " {name} -n {name}").says("{name}")),
		crossing("get -o wide", "kubectl prints all objects.").setup(made).
			do(kubectl("get " + bundles + " -o wide").says("{name}")),
		crossing("get --watch", "kubectl prints that the object is deleted.").setup(made).
			do(kubectl("get " + bundles + " --watch --output-watch-events --field-selector=metadata.name={name}").after("ADDED").
				meanwhile("delete " + bundles + " {name}").until("DELETED")),
		crossing("describe", "kubectl describes the object.").setup(made).
			do(kubectl("describe "+bundles+" {name}").says("{name}", "ClusterTrustBundle")),
		crossing("explain, in a new group version", "kubectl explains a field of a group version that only the newer server has.").
			do(kubectl("explain storageversionmigrations.spec").says("StorageVersionMigration", "FIELD: spec")),
		crossing("explain, in a shared group version",
			"kubectl explains a field of a kind. The older server's document of the group version lacks this kind.").
			do(kubectl("explain clustertrustbundles.spec --api-version=certificates.k8s.io/v1").says("ClusterTrustBundle", "trustBundle")),
		crossing("create", "The newer server has the object.").
			do(create(bundle("made")).says("created")).truth(label("made")),
		crossing("create with a wrong field", "kubectl refuses the object, and names the wrong field.").
			do(kubectl("create -f - --validate=strict").input(misspelled).code(1).says("trustBundel")).truth(gone(bundles, "{name}")),
		crossing("apply, client-side", "The object is created, then changed.").
			do(kubectl("apply -f -").input(bundle("made")).says("created"),
				kubectl("apply -f -").input(bundle("applied")).says("configured")).truth(label("applied")),
		crossing("apply, server-side", "The object is created, then changed.").
			do(kubectl("apply --server-side -f -").input(bundle("made")).says("serverside-applied"),
				kubectl("apply --server-side -f -").input(bundle("applied")).says("serverside-applied")).truth(label("applied")),
		crossing("diff", "kubectl shows the difference, and changes nothing.").setup(made).
			do(kubectl("diff -f -").input(bundle("different")).code(1).says("+", "different")).truth(label("made")),
		crossing("edit", "The object has the change of the editor.").setup(made).
			do(kubectl("edit " + bundles + " {name}").editor("sed -i s/made/edited/").says("edited")).truth(label("edited")),
		crossing("patch, merge", "The object is changed.").setup(made).
			do(kubectl(`patch ` + bundles + ` {name} --type=merge -p {"metadata":{"labels":{"` + labelled +
				`":"patched"}}}`).says("patched")).truth(label("patched")),
		crossing("patch, JSON", "The object is changed.").setup(made).
			do(kubectl(`patch ` + bundles + ` {name} --type=json -p [{"op":"replace","path":"/metadata/labels/skewproof.example~1state","value":"patched"}]`).says("patched")).
			truth(label("patched")),
		crossing("patch, strategic", "The object is changed.").setup(made).
			do(kubectl(`patch ` + bundles + ` {name} --type=strategic -p {"metadata":{"labels":{"` + labelled +
				`":"patched"}}}`).says("patched")).truth(label("patched")),
		crossing("label", "The object has the label.").setup(made).
			do(kubectl("label " + bundles + " {name} --overwrite " + labelled + "=labelled").says("labeled")).truth(label("labelled")),
		crossing("wait --for=jsonpath", "kubectl ends when the object meets the condition.").setup(made).
			do(kubectl("wait " + bundles + " {name} --timeout=20s --for=jsonpath=" + labelPath + "=awaited").
				meanwhile("label " + bundles + " {name} --overwrite " + labelled + "=awaited").says("condition met")),
		crossing("wait --for=delete", "kubectl ends when the object is deleted.").setup(made).
			do(kubectl("wait " + bundles + " {name} --timeout=20s --for=delete").meanwhile("delete " + bundles + " {name}")).truth(gone(bundles,
			"{name}")),
		crossing("delete --wait", "The object is gone.").setup(made).
			do(kubectl("delete --wait " + bundles + " {name}").says("deleted")).truth(gone(bundles, "{name}")),
		crossing("delete --wait, of a namespace", "The namespace and the object in it are gone.").
			setup(kubectl("create namespace {name}"), create(request)).
			do(kubectl("delete --wait namespace {name}").says("deleted")).
			truth(gone(requests, "{name}", "-n", "{name}")).controlled(),
		crossing("events", "kubectl prints an event about the object.").setup(made, create(event)).
			do(kubectl("events --for " + bundles + "/{name}").says("an event about {name}")),
		crossing("auth can-i", "kubectl says yes, and does not warn that the resource is unknown.").
			do(kubectl("auth can-i create -n default " + requests).says("yes").quiet()),
		crossing("api-resources", "kubectl lists the resource.").do(kubectl("api-resources -o name").says(bundles)),
		crossing("api-versions", "kubectl lists the group version that only the newer server has.").
			do(kubectl("api-versions").says("storagemigration.k8s.io/v1\n")),
		crossing("get, with a stale discovery cache",
			"kubectl prints the object, although its discovery cache is from before the upgrade.").setup(made).
			do(kubectl("get clustertrustbundles {name}").says("{name}")).stale(),
		crossing("api-resources, with a stale discovery cache",
			"kubectl lists the resource, although its discovery cache is from before the upgrade.").
			do(kubectl("api-resources -o name").says(bundles)).stale(),
		crossing("explain, with a stale discovery cache", "kubectl explains the kind, although its discovery cache is from before the upgrade.").
			do(kubectl("explain clustertrustbundles.spec").says("ClusterTrustBundle", "trustBundle")).stale(),
		row("rollout status", "kubectl ends when the Deployment is rolled out.").setup(create(workload)).
			do(kubectl("rollout status -n default deployment/{name} --timeout=40s").says("successfully rolled out")).controlled(),
		row("rollout restart and history", "kubectl lists a second revision.").setup(create(workload)).
			do(kubectl("rollout status -n default deployment/{name} --timeout=40s").says("successfully rolled out"),
				kubectl("rollout restart -n default deployment/{name}").says("restarted"),
				kubectl("rollout status -n default deployment/{name} --timeout=40s").says("successfully rolled out"),
				kubectl("rollout history -n default deployment/{name} --revision=2").says("revision #2")).controlled(),
		row("top nodes", "kubectl says that there are no metrics.").do(kubectl("top nodes").code(1).says("Metrics API not available")),
	}
}

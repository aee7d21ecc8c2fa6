// Package config reads the files in which people have the flags of their kube-apiservers: kubeadm's
// configuration, pods, configurations of k3s and RKE2, and command lines.
package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	yamlnode "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/gates"
)

// Kind is the kind of a file.
type Kind string

// The kinds of files.
const (
	Kubeadm     Kind = "kubeadm configuration"
	StaticPod   Kind = "static pod"
	K3s         Kind = "k3s or RKE2 configuration"
	CommandLine Kind = "command line"
)

// File is what a file says about a kube-apiserver.
type File struct {
	Kind Kind
	// Version is the version of Kubernetes in the file, as it stands there; "" if it has none.
	Version string
	// Flags are the flags of the kube-apiserver, in their order. Those of a kubeadm configuration
	// begin with those that kubeadm adds and that matter for peers.
	Flags []gates.Set
	// KubeadmAPI is the version of kubeadm's API, such as "v1beta4"; "" if the file is not kubeadm's.
	KubeadmAPI string
	// Notes say what was not read.
	Notes []string
}

// limit is the size of the largest file, in bytes. A configuration has some kilobytes.
const limit = 1 << 20

// Stdin is the name of the standard input.
const Stdin = "-"

// Open reads files that describe one kube-apiserver together, or the standard input. commandLine
// says that a file may be the text of a command line. Errors name the file.
func Open(names []string, stdin io.Reader, commandLine bool) (File, error) {
	var r reader
	for _, name := range names {
		body, err := content(name, stdin)
		if err == nil {
			err = r.read(name, body, commandLine)
		}
		if err != nil {
			return File{}, fmt.Errorf("read the configuration %s: %w", name, err)
		}
	}
	if err := r.finish(); err != nil {
		return File{}, fmt.Errorf("read the configuration %s: %w", strings.Join(names, ", "), err)
	}
	return r.File, nil
}

// content reads a file of limited size.
func content(name string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if name != Stdin {
		info, err := os.Stat(name) // before it is opened: a pipe without a writer would wait
		switch {
		case name == "":
			return nil, errors.New("the file has no name")
		case err != nil:
			return nil, err
		case info.IsDir():
			return nil, errors.New("it is a directory; give the file, such as kubeadm.yaml or kube-apiserver.yaml in it")
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("it is a pipe or a device and not a file; to read the standard input, give %s", Stdin)
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	body, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && len(body) > limit {
		err = fmt.Errorf("it is larger than %d KiB, and a configuration of a kube-apiserver has some; is this the right file?", limit>>10)
	}
	return body, err
}

// reader collects what files say.
type reader struct {
	File
	name string   // of the present file
	seen []string // kinds of kubeadm's documents
	// These are of kubeadm's ClusterConfiguration.
	args         []gates.Set
	certificates string // their directory
}

func (r *reader) read(name string, body []byte, commandLine bool) error {
	r.name = name
	text := strings.ReplaceAll(string(bytes.TrimPrefix(body, []byte("\ufeff"))), "\r\n", "\n")
	unprintable := func(r rune) bool {
		return r != '\n' && r != '\t' && r != '\r' && unicode.IsControl(r) && (r != 0 || !commandLine)
	}
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable):
		return errors.New("it is no text in UTF-8")
	case strings.TrimSpace(text) == "":
		return errors.New("it is empty")
	case !commandLine || object.MatchString(text):
		return r.documents(text)
	}
	if err := r.take(CommandLine); err != nil {
		return err
	}
	flags, err := words(text, name)
	r.Flags = append(r.Flags, flags...)
	return err
}

// finish completes what all files say together.
func (r *reader) finish() error {
	if r.Kind == "" {
		return fmt.Errorf("it says nothing about a kube-apiserver. %s", strings.Join(append(r.Notes, give), " "))
	}
	r.Flags = slices.DeleteFunc(r.Flags, func(s gates.Set) bool {
		tool := ownFlags[s.Name]
		if tool != "" {
			r.note("`%s` is a flag of the kube-apiserver of %s only. It was not checked.", s, tool)
		}
		return tool != ""
	})
	if r.Kind == Kubeadm {
		return r.finishKubeadm()
	}
	return nil
}

// ownFlags are flags that distributions add to their kube-apiservers.
var ownFlags = map[string]string{"advertise-port": "k3s", "openshift-config": "OpenShift"}

// give says what a file may be.
const give = "Give the pod of kube-apiserver (kubectl -n kube-system get pod NAME -o yaml), the configuration of kubeadm " +
	"(kubectl -n kube-system get configmap kubeadm-config -o yaml), that of k3s or RKE2 with kube-apiserver-arg, " +
	"or with --flags-from a command line (ps -o args= -C kube-apiserver, on a node)"

// documents reads the documents of a text in YAML or JSON.
func (r *reader) documents(text string) error {
	for i, one := range separator.Split(text, -1) {
		raw, err := yaml.YAMLToJSON([]byte(one))
		switch {
		case err != nil && (strings.Contains(one, "{{") || strings.Contains(one, "{%")):
			err = fmt.Errorf("%w; it looks like a template: give what is made of it", err)
		case err != nil:
		case string(raw) == "null":
			continue
		case raw[0] != '{':
			return fmt.Errorf("document %d has no fields. %s", i+1, give)
		case !alone(one):
			err = errors.New("something follows its first object; put a line with --- between objects")
		default:
			if _, twice := yaml.YAMLToJSONStrict([]byte(one)); twice != nil {
				_, where, _ := strings.Cut(strings.Join(strings.Fields(twice.Error()), " "), "errors: ")
				r.note("Of a name that is twice in document %d, the last one counts: %s.", i+1, where)
			}
			err = r.document("", raw)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	return nil
}

// alone reports whether nothing follows the first value of a text in YAML, which is all that others
// read of it.
func alone(text string) bool {
	var value yamlnode.Node
	values := yamlnode.NewDecoder(strings.NewReader(text))
	return values.Decode(&value) != nil || errors.Is(values.Decode(&value), io.EOF)
}

// document reads one document, of a kind if it names none itself.
func (r *reader) document(kind string, raw json.RawMessage) error {
	var head struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	head.Kind = kind
	var fields map[string]json.RawMessage
	if err := cmp.Or(decode("document", raw, &fields), decode("document", raw, &head)); err != nil {
		return err
	}
	group, version, _ := strings.Cut(head.APIVersion, "/")
	tool := others[group]
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if i := strings.Index(field, "_"); head.Kind == "" {
			tool = cmp.Or(tool, others[field[:i+1]], others[field])
		}
	}
	switch {
	case tool != "":
		return fmt.Errorf("it is a file of %s, which skewproof does not read. %s", tool, give)
	case group == kubeadmGroup:
		return r.kubeadm(head.Kind, version, raw)
	case strings.HasSuffix(head.Kind, "List"): // as kubectl prints several objects; those of a PodList have no kind
		for _, item := range head.Items {
			if err := r.document(strings.TrimSuffix(head.Kind, "List"), item); err != nil {
				return err
			}
		}
		return nil
	case head.Kind == "ConfigMap":
		return r.configMap(raw)
	case slices.Contains(podKinds, head.Kind):
		return r.pod(raw)
	case head.Kind == "" && head.APIVersion == "":
		return r.k3s(fields)
	}
	r.note("The document of kind %s (%s) was not read.", head.Kind, head.APIVersion)
	return nil
}

// others are tools whose files name the flags of kube-apiservers in their own way, by the group of
// the file, by a field, or by the beginning of a field.
var others = map[string]string{
	"kops.k8s.io": "kOps", "kind.x-k8s.io": "kind", "cluster.x-k8s.io": "Cluster API", "controlplane.cluster.x-k8s.io": "Cluster API",
	"bootstrap.cluster.x-k8s.io": "Cluster API", "minikube.sigs.k8s.io": "minikube", "k0s.k0sproject.io": "k0s", "core.gardener.cloud": "Gardener",
	"machine": "Talos", "cluster": "Talos", "kube_": "kubespray",
}

func (f *File) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.Notes, text) {
		f.Notes = append(f.Notes, text)
	}
}

// separator matches the line before a document, and object the beginning of a document with fields.
var (
	separator = regexp.MustCompile(`(?m)^---(?: |$)`)
	object    = regexp.MustCompile(`(?m)^(apiVersion:|kind:| *` + k3sArg + `\+?:)|^\s*\{`)
)

// take makes this file one of a kind. A file is of one kind only.
func (f *File) take(kind Kind) error {
	if f.Kind != "" && f.Kind != kind {
		return fmt.Errorf("it has a %s beside a %s; give them in one plan each", kind, f.Kind)
	}
	f.Kind = kind
	return nil
}

// decode decodes a value, if there is one.
func decode(what string, raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return readable(what, kjson.UnmarshalCaseSensitivePreserveInts(raw, into))
}

// readable says which value is of a wrong type, without the names of types in Go.
func readable(what string, err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Type.Kind() == reflect.String:
		return fmt.Errorf("%s: %s is of the type %s and not a text; put it in quotes", what, cmp.Or(strings.Trim(wrong.Field, "."), "a value"), wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s: %s is of the wrong type %s", what, cmp.Or(strings.Trim(wrong.Field, "."), "it"), wrong.Value)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

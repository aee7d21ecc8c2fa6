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
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	name string      // of the present file
	seen []string    // kinds of kubeadm's documents
	args []gates.Set // of kubeadm's ClusterConfiguration
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
		return errors.New("it says nothing about a kube-apiserver; give a kubeadm ClusterConfiguration, a static pod of kube-apiserver, or a configuration of k3s or RKE2")
	}
	if r.Kind == Kubeadm {
		return r.finishKubeadm()
	}
	return nil
}

// documents reads the documents of a text in YAML or JSON.
func (r *reader) documents(text string) error {
	for i, one := range separator.Split(text, -1) {
		raw, err := yaml.YAMLToJSON([]byte(one))
		switch {
		case err != nil:
		case string(raw) == "null":
			continue
		case raw[0] != '{':
			return fmt.Errorf("document %d has no fields; a command line is for --flags-from", i+1)
		default:
			err = r.document(raw)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	return nil
}

func (r *reader) document(raw json.RawMessage) error {
	var head struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	var fields map[string]json.RawMessage
	if err := errors.Join(decode("document", raw, &fields), decode("document", raw, &head)); err != nil {
		return err
	}
	group, version, _ := strings.Cut(head.APIVersion, "/")
	tool := others[group]
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if prefix, _, _ := strings.Cut(field, "_"); head.Kind == "" {
			tool = cmp.Or(tool, others[prefix])
		}
	}
	switch {
	case tool != "":
		return fmt.Errorf("it is a file of %s, which skewproof does not read; give the static pod or the kubeadm configuration that %s makes of it, "+
			"such as /etc/kubernetes/manifests/kube-apiserver.yaml on a node", tool, tool)
	case group == kubeadmGroup:
		return r.kubeadm(head.Kind, version, raw)
	case head.Kind == "List": // as kubectl prints several objects
		for _, item := range head.Items {
			if err := r.document(item); err != nil {
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
	r.note("The document of kind %s (%s) says nothing about a kube-apiserver.", head.Kind, head.APIVersion)
	return nil
}

// others are tools whose files name the flags of kube-apiservers in their own way, by the group of
// the file or by the beginning of a field, up to "_".
var others = map[string]string{
	"kops.k8s.io": "kOps", "kind.x-k8s.io": "kind", "cluster.x-k8s.io": "Cluster API", "controlplane.cluster.x-k8s.io": "Cluster API",
	"bootstrap.cluster.x-k8s.io": "Cluster API", "minikube.sigs.k8s.io": "minikube", "k0s.k0sproject.io": "k0s",
	"machine": "Talos", "cluster": "Talos", "kube": "kubespray",
}

func (f *File) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.Notes, text) {
		f.Notes = append(f.Notes, text)
	}
}

// separator matches the line before a document, and object the beginning of a document with fields.
var (
	separator = regexp.MustCompile(`(?m)^---(?: |$)`)
	object    = regexp.MustCompile(`(?m)^(apiVersion:|kind:|` + k3sArg + `\+?:)|^\s*\{`)
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
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

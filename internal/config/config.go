// Package config reads the files in which people have the flags of their kube-apiservers: kubeadm's
// configuration, static pods, configurations of k3s and RKE2, and command lines.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	// Advertise is the address that kubeadm's localAPIEndpoint names, and Patches kubeadm's directory
	// of patches; "" if there are none.
	Advertise, Patches string
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
	f, err := r.finish()
	if err != nil {
		return File{}, fmt.Errorf("read the configuration %s: %w", strings.Join(names, ", "), err)
	}
	return f, nil
}

// Read reads the content of one file.
func Read(name string, body []byte, commandLine bool) (File, error) {
	var r reader
	if err := r.read(name, body, commandLine); err != nil {
		return File{}, err
	}
	return r.finish()
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
		case info.Size() > limit:
			return nil, errTooLarge
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
		err = errTooLarge
	}
	return body, err
}

var errTooLarge = fmt.Errorf("it is larger than %d KiB, and a configuration of a kube-apiserver has some; is this the right file?", limit>>10)

// reader collects what files say. name is that of the present one.
type reader struct {
	File
	kubeadm kubeadmFile
	name    string
}

func (r *reader) read(name string, body []byte, commandLine bool) error {
	r.name = name
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if commandLine { // as in /proc/PID/cmdline
		body = bytes.ReplaceAll(body, []byte{0}, []byte{'\n'})
	}
	text := strings.ReplaceAll(string(body), "\r\n", "\n")
	unprintable := func(r rune) bool { return r != '\n' && r != '\t' && r != '\r' && unicode.IsControl(r) }
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable):
		return errors.New("it is no text in UTF-8")
	case strings.TrimSpace(text) == "":
		return errors.New("it is empty")
	}
	if isMap, err := r.documents(text); isMap || !commandLine {
		return err
	}
	if err := r.take(CommandLine); err != nil {
		return err
	}
	flags, err := words(text, name)
	r.Flags = append(r.Flags, flags...)
	return err
}

// finish returns what all files say together.
func (r *reader) finish() (File, error) {
	switch r.Kind {
	case "":
		return File{}, errors.New("it says nothing about a kube-apiserver; give a kubeadm ClusterConfiguration, a static pod of kube-apiserver, or a configuration of k3s or RKE2")
	case Kubeadm:
		return r.File, r.kubeadm.finish(&r.File)
	}
	return r.File, nil
}

// documents reads the documents of a text in YAML or JSON. isMap is false if the text is neither.
func (r *reader) documents(text string) (isMap bool, err error) {
	for i, one := range separator.Split(text, -1) {
		raw, err := yaml.YAMLToJSON([]byte(one))
		if err != nil {
			return isMap || object.MatchString(one), fmt.Errorf("document %d: %w", i+1, err)
		}
		if string(raw) == "null" {
			continue
		}
		if raw[0] != '{' {
			return isMap, fmt.Errorf("document %d has no fields; a command line is for --flags-from", i+1)
		}
		isMap = true
		if err := r.document(raw); err != nil {
			return true, fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	return isMap, nil
}

func (r *reader) document(raw []byte) error {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head); err != nil {
		return err
	}
	group, version, _ := strings.Cut(head.APIVersion, "/")
	switch {
	case group == kubeadmGroup:
		return r.kubeadmDocument(head.Kind, version, raw)
	case head.Kind == "ConfigMap":
		return r.configMap(raw)
	case head.Kind == "Pod":
		return r.pod(raw)
	case head.Kind == "" && head.APIVersion == "":
		return r.k3s(raw)
	case others[group] != "":
		return notRead(others[group])
	}
	r.note("The document of kind %s (%s) says nothing about a kube-apiserver.", head.Kind, head.APIVersion)
	return nil
}

func notRead(tool string) error {
	return fmt.Errorf("it is a file of %s, which skewproof does not read; give the static pod or the kubeadm configuration that %s makes of it, "+
		"such as /etc/kubernetes/manifests/kube-apiserver.yaml on a node", tool, tool)
}

// others are tools whose files name the flags of kube-apiservers in their own way, by the group of
// the file or by one of its fields.
var others = map[string]string{
	"kops.k8s.io": "kOps", "kind.x-k8s.io": "kind", "cluster.x-k8s.io": "Cluster API", "controlplane.cluster.x-k8s.io": "Cluster API",
	"bootstrap.cluster.x-k8s.io": "Cluster API", "minikube.sigs.k8s.io": "minikube", "k0s.k0sproject.io": "k0s",
	"machine": "Talos", "kube_version": "kubespray", "kube_apiserver_feature_gates": "kubespray", "kube_kubeadm_apiserver_extra_args": "kubespray",
}

func (f *File) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.Notes, text) {
		f.Notes = append(f.Notes, text)
	}
}

// separator matches the line before a document, and object the beginning of a document with fields.
var (
	separator = regexp.MustCompile(`(?m)^---(?: |$)`)
	object    = regexp.MustCompile(`(?m)^(apiVersion:|kind:|` + k3sArg + `)|^\s*\{`)
)

// take makes this file one of a kind. A file is of one kind only.
func (f *File) take(kind Kind) error {
	if f.Kind != "" && f.Kind != kind {
		return fmt.Errorf("it has a %s beside a %s; give them in one plan each", kind, f.Kind)
	}
	f.Kind = kind
	return nil
}

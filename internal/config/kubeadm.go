package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	kjson "sigs.k8s.io/json"

	"github.com/skewproof/skewproof/internal/gates"
)

const kubeadmGroup = "kubeadm.k8s.io"

// kubeadmAPIs are the versions of kubeadm's API, and the first and the last minor version of
// kubeadm that reads them; "" if there is no last one. Source: k8s.io/kubernetes cmd/kubeadm/app,
// util/config/common.go and apis/kubeadm/scheme.
var kubeadmAPIs = map[string][2]string{"v1beta3": {"v1.22", "v1.36"}, "v1beta4": {"v1.31", ""}, "v1": {"v1.37", ""}}

// kubeadmFields are the fields of kubeadm's objects, in all versions of its API.
var kubeadmFields = map[string]string{
	"ClusterConfiguration": "apiVersion kind etcd networking kubernetesVersion controlPlaneEndpoint apiServer controllerManager scheduler dns " +
		"proxy certificatesDir imageRepository featureGates clusterName encryptionAlgorithm certificateValidityPeriod caCertificateValidityPeriod",
	"apiServer": "extraArgs extraVolumes extraEnvs certSANs timeoutForControlPlane",
	"InitConfiguration": "apiVersion kind bootstrapTokens dryRun nodeRegistration localAPIEndpoint certificateKey skipPhases patches " +
		"timeouts",
	"JoinConfiguration": "apiVersion kind dryRun nodeRegistration caCertPath discovery controlPlane skipPhases patches timeouts",
	"controlPlane":      "localAPIEndpoint certificateKey",
	"localAPIEndpoint":  "advertiseAddress bindPort",
	"patches":           "directory",
}

// kubeadmFile collects what the documents of a kubeadm configuration say.
type kubeadmFile struct {
	seen  []string // kinds
	args  []gates.Set
	certs string // certificatesDir
}

// object reads the fields of one of kubeadm's objects, and notes those that kubeadm does not know.
func (f *File) object(what string, raw json.RawMessage) (fields map[string]json.RawMessage, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(strings.Fields(kubeadmFields[what]), name) {
			f.note("%s: kubeadm has no field %q there. It was not read.", what, name)
		}
	}
	return fields, nil
}

// scalar reads a field, if it is there.
func scalar(what string, raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (r *reader) kubeadmDocument(kind, version string, raw []byte) error {
	f, k := &r.File, &r.kubeadm
	if err := f.take(Kubeadm); err != nil {
		return err
	}
	if _, known := kubeadmAPIs[version]; !known {
		return fmt.Errorf("%s/%s is not a version of kubeadm's API that skewproof reads, which are v1beta3, v1beta4 and v1; "+
			"'kubeadm config migrate' makes a newer file", kubeadmGroup, version)
	}
	if f.KubeadmAPI != "" && f.KubeadmAPI != version {
		return fmt.Errorf("it has documents of %s/%s and of %s/%s, which kubeadm refuses", kubeadmGroup, f.KubeadmAPI, kubeadmGroup, version)
	}
	if slices.Contains(k.seen, kind) {
		return fmt.Errorf("it has two documents of kind %s", kind)
	}
	k.seen, f.KubeadmAPI = append(k.seen, kind), version
	switch kind {
	case "ClusterConfiguration":
		return r.cluster(raw)
	case "InitConfiguration":
		return r.node(kind, raw)
	case "JoinConfiguration":
		return r.node(kind, raw)
	}
	return nil // about something else
}

func (r *reader) cluster(raw []byte) error {
	f, k := &r.File, &r.kubeadm
	const kind = "ClusterConfiguration"
	all, err := f.object(kind, raw)
	if err != nil {
		return err
	}
	server, err := f.object("apiServer", all["apiServer"])
	if err != nil {
		return err
	}
	if err := errors.Join(scalar("kubernetesVersion", all["kubernetesVersion"], &f.Version), scalar("certificatesDir", all["certificatesDir"], &k.certs)); err != nil {
		return err
	}
	const where = kind + ".apiServer.extraArgs"
	var args []struct {
		Name        string `json:"name"`
		Value       string `json:"value"`
		MergeMethod string `json:"mergeMethod"`
	}
	var byName map[string]string
	if f.KubeadmAPI == "v1beta3" {
		err = scalar(where, server["extraArgs"], &byName)
	} else {
		err = scalar(where, server["extraArgs"], &args)
	}
	if err != nil {
		return fmt.Errorf("%w; in %s/%s it is a %s", err, kubeadmGroup, f.KubeadmAPI,
			map[bool]string{true: "map, from names to values in quotes", false: "list of objects with a name and a value in quotes"}[f.KubeadmAPI == "v1beta3"])
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		k.args = append(k.args, gates.Set{Name: name, Value: byName[name], From: r.name})
	}
	for _, a := range args {
		if a.MergeMethod != "" {
			f.note("%s: %s has a mergeMethod. It was not read.", where, a.Name)
			continue
		}
		k.args = append(k.args, gates.Set{Name: a.Name, Value: a.Value, From: r.name})
	}
	for i, a := range k.args {
		switch {
		case a.Name == "":
			return fmt.Errorf("%s: index %d: argument has no name", where, i)
		case strings.HasPrefix(a.Name, "-"):
			return fmt.Errorf("%s: %q: kubeadm writes the hyphens itself; did you mean %q?", where, a.Name, strings.TrimLeft(a.Name, "-"))
		}
	}
	if len(all["featureGates"]) > 0 {
		f.note("ClusterConfiguration.featureGates are those of kubeadm, and not those of kube-apiserver.")
	}
	return nil
}

// node reads what the file says about one node. If it has both kinds of documents, the
// InitConfiguration wins.
func (r *reader) node(kind string, raw []byte) error {
	all, err := r.object(kind, raw)
	if err != nil {
		return err
	}
	of := all
	if kind == "JoinConfiguration" {
		if of, err = r.object("controlPlane", all["controlPlane"]); err != nil {
			return err
		}
		if len(of) == 0 {
			r.note("%s.controlPlane is empty: the node that joins gets no kube-apiserver. The document was not read.", kind)
			return nil
		}
	}
	endpoint, err := r.object("localAPIEndpoint", of["localAPIEndpoint"])
	if err != nil {
		return err
	}
	var advertise, directory string
	patches, err := r.object("patches", all["patches"])
	err = errors.Join(err, scalar("localAPIEndpoint.advertiseAddress", endpoint["advertiseAddress"], &advertise),
		scalar("patches.directory", patches["directory"], &directory))
	if kind == "JoinConfiguration" && slices.Contains(r.kubeadm.seen, "InitConfiguration") {
		advertise, directory = cmp.Or(r.Advertise, advertise), cmp.Or(r.Patches, directory)
	}
	r.Advertise, r.Patches = cmp.Or(advertise, r.Advertise), cmp.Or(directory, r.Patches)
	return err
}

// finish adds the flags that kubeadm adds and that matter for peers, unless the file replaces them.
// Source: k8s.io/kubernetes cmd/kubeadm/app/phases/controlplane/manifests.go, getAPIServerCommand.
func (k *kubeadmFile) finish(f *File) error {
	if !slices.Contains(k.seen, "ClusterConfiguration") {
		return errors.New("it has no ClusterConfiguration, which has the flags of kube-apiserver; 'kubectl -n kube-system get configmap kubeadm-config -o yaml' prints it")
	}
	certs := cmp.Or(k.certs, "/etc/kubernetes/pki")
	for _, own := range [][2]string{
		{"advertise-address", f.Advertise},
		{"proxy-client-cert-file", path.Join(certs, "front-proxy-client.crt")}, {"proxy-client-key-file", path.Join(certs, "front-proxy-client.key")},
		{"requestheader-allowed-names", "front-proxy-client"}, {"requestheader-client-ca-file", path.Join(certs, "front-proxy-ca.crt")},
		{"requestheader-extra-headers-prefix", "X-Remote-Extra-"}, {"requestheader-group-headers", "X-Remote-Group"},
		{"requestheader-username-headers", "X-Remote-User"},
	} {
		if own[1] != "" && !slices.ContainsFunc(k.args, func(s gates.Set) bool { return s.Name == own[0] }) {
			f.Flags = append(f.Flags, gates.Set{Name: own[0], Value: own[1], From: "kubeadm"})
		}
	}
	f.Flags = append(f.Flags, k.args...)
	return nil
}

// OldAPI returns a sentence if kubeadm of a version does not read the file.
func (f File) OldAPI(version string) string {
	minor, reads := semver.MajorMinor(version), kubeadmAPIs[f.KubeadmAPI]
	switch {
	case f.KubeadmAPI == "":
	case semver.Compare(minor, reads[0]) < 0:
		return fmt.Sprintf("kubeadm %s does not read %s/%s, which came with %s.", minor, kubeadmGroup, f.KubeadmAPI, reads[0])
	case reads[1] != "" && semver.Compare(minor, reads[1]) > 0:
		return fmt.Sprintf("kubeadm %s does not read %s/%s. `kubeadm config migrate` of %s makes a newer file.", minor, kubeadmGroup, f.KubeadmAPI, reads[1])
	}
	return ""
}

// configMap reads the ConfigMap in which kubeadm keeps its ClusterConfiguration.
func (r *reader) configMap(raw []byte) error {
	var object struct {
		Data map[string]string `json:"data"`
	}
	if err := scalar("ConfigMap", raw, &object); err != nil {
		return err
	}
	text, ok := object.Data["ClusterConfiguration"]
	if !ok {
		r.note("The ConfigMap has no ClusterConfiguration. It was not read.")
		return nil
	}
	if _, err := r.documents(text); err != nil {
		return fmt.Errorf("the ClusterConfiguration in it: %w", err)
	}
	return nil
}

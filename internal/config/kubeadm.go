package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// removedAPIs are older versions of kubeadm's API, and the last kubeadm that reads them. Source:
// k8s.io/kubernetes cmd/kubeadm/app/util/config/common.go.
var removedAPIs = map[string]string{"v1beta1": "v1.15", "v1beta2": "v1.22"}

// clusterConfiguration is what is read of kubeadm's ClusterConfiguration.
type clusterConfiguration struct {
	KubernetesVersion string          `json:"kubernetesVersion"`
	CertificatesDir   string          `json:"certificatesDir"`
	FeatureGates      json.RawMessage `json:"featureGates"`
	APIServer         struct {
		ExtraArgs json.RawMessage `json:"extraArgs"`
	} `json:"apiServer"`
}

// unread are the fields of kubeadm's documents that are not read, in all versions of its API. In an
// InitConfiguration and a JoinConfiguration nothing decides about a kube-apiserver's flags.
var unread = map[string]string{
	"ClusterConfiguration": "apiVersion kind etcd networking controlPlaneEndpoint controllerManager scheduler dns proxy imageRepository clusterName " +
		"encryptionAlgorithm certificateValidityPeriod caCertificateValidityPeriod apiServer.extraVolumes apiServer.extraEnvs " +
		"apiServer.certSANs apiServer.timeoutForControlPlane",
	"InitConfiguration": "apiVersion kind bootstrapTokens dryRun nodeRegistration localAPIEndpoint certificateKey skipPhases patches timeouts",
	"JoinConfiguration": "apiVersion kind dryRun nodeRegistration caCertPath discovery controlPlane skipPhases patches timeouts",
}

// kubeadmFields decodes a document, and notes the fields that kubeadm does not know.
func (f *File) kubeadmFields(kind string, raw json.RawMessage, into any) error {
	unknown, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return readable(kind, err)
	}
	for _, u := range unknown {
		var field kjson.FieldError
		if errors.As(u, &field) && !slices.Contains(strings.Fields(unread[kind]), field.FieldPath()) {
			f.note("%s: kubeadm has no field %q there. It was not read.", kind, field.FieldPath())
		}
	}
	return nil
}

func (r *reader) kubeadm(kind, version string, raw json.RawMessage) error {
	if err := r.take(Kubeadm); err != nil {
		return err
	}
	if _, known := kubeadmAPIs[version]; !known {
		hint := ""
		if last := removedAPIs[version]; last != "" {
			hint = fmt.Sprintf(". 'kubeadm config migrate' of %s makes a newer file", last)
		}
		return fmt.Errorf("apiVersion %s/%s is none of kubeadm's API that skewproof reads, which are v1beta3, v1beta4 and v1%s", kubeadmGroup, version, hint)
	}
	if r.KubeadmAPI != "" && r.KubeadmAPI != version {
		return fmt.Errorf("it has documents of %s/%s and of %s/%s, which kubeadm refuses", kubeadmGroup, r.KubeadmAPI, kubeadmGroup, version)
	}
	if slices.Contains(r.seen, kind) {
		return fmt.Errorf("it has two documents of kind %s", kind)
	}
	r.seen, r.KubeadmAPI = append(r.seen, kind), version
	switch kind {
	case "ClusterConfiguration":
		return r.cluster(kind, raw)
	case "InitConfiguration", "JoinConfiguration":
		return r.kubeadmFields(kind, raw, &struct{}{})
	}
	return nil // another document is about something else
}

func (r *reader) cluster(kind string, raw json.RawMessage) error {
	var c clusterConfiguration
	if err := r.kubeadmFields(kind, raw, &c); err != nil {
		return err
	}
	r.Version, r.certificates = c.KubernetesVersion, c.CertificatesDir
	const where = "ClusterConfiguration.apiServer.extraArgs"
	var args []struct {
		Name        string `json:"name"`
		Value       string `json:"value"`
		MergeMethod string `json:"mergeMethod"`
	}
	byName, shape, into := map[string]string{}, "list of objects with a name and a value in quotes", any(&args)
	if r.KubeadmAPI == "v1beta3" {
		shape, into = "map, from names to values in quotes", &byName
	}
	if err := decode(where, c.APIServer.ExtraArgs, into); err != nil {
		return fmt.Errorf("%w; in %s/%s it is a %s", err, kubeadmGroup, r.KubeadmAPI, shape)
	}
	all := make([][2]string, 0, len(byName)+len(args))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, [2]string{name, byName[name]})
	}
	for _, a := range args {
		if a.MergeMethod != "" && r.KubeadmAPI == "v1" { // older versions ignore it
			r.note("%s: %s has a mergeMethod. It was not read.", where, a.Name)
			continue
		}
		all = append(all, [2]string{a.Name, a.Value})
	}
	for i, a := range all {
		switch {
		case a[0] == "":
			return fmt.Errorf("%s: index %d: argument has no name", where, i)
		case strings.HasPrefix(a[0], "-"):
			return fmt.Errorf("%s: %q: kubeadm writes the hyphens itself; did you mean %q?", where, a[0], strings.TrimLeft(a[0], "-"))
		}
		r.args = append(r.args, flagsOf([]string{"--" + a[0] + "=" + a[1]}, r.name)...)
	}
	if len(c.FeatureGates) > 0 {
		r.note("ClusterConfiguration.featureGates are those of kubeadm. Those of kube-apiserver are the feature-gates of apiServer.extraArgs.")
	}
	return nil
}

// finishKubeadm adds the flags that kubeadm adds and that a proxy needs, unless the file replaces
// them. Source: k8s.io/kubernetes cmd/kubeadm/app/phases/controlplane/manifests.go,
// getAPIServerCommand.
func (r *reader) finishKubeadm() error {
	if !slices.Contains(r.seen, "ClusterConfiguration") {
		return fmt.Errorf("it has no ClusterConfiguration, which has the flags of kube-apiserver, but %s; "+
			"'kubectl -n kube-system get configmap kubeadm-config -o yaml' prints it", strings.Join(r.seen, ", "))
	}
	for _, own := range [][2]string{{"proxy-client-cert-file", "front-proxy-client.crt"}, {"proxy-client-key-file", "front-proxy-client.key"}} {
		if !slices.ContainsFunc(r.args, func(s gates.Set) bool { return s.Name == own[0] }) {
			r.Flags = append(r.Flags, gates.Set{Name: own[0], Value: cmp.Or(r.certificates, gates.Certificates) + "/" + own[1], From: gates.FromKubeadm})
		}
	}
	r.Flags = append(r.Flags, r.args...)
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
func (r *reader) configMap(raw json.RawMessage) error {
	var object struct {
		Data map[string]string `json:"data"`
	}
	if err := decode("ConfigMap", raw, &object); err != nil {
		return err
	}
	text, ok := object.Data["ClusterConfiguration"]
	if !ok {
		r.note("The ConfigMap has no ClusterConfiguration. It was not read.")
		return nil
	}
	if err := r.documents(text); err != nil {
		return fmt.Errorf("the ClusterConfiguration in it: %w", err)
	}
	return nil
}

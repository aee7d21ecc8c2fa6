package config

import (
	"strings"
	"testing"
)

// Nothing in the documents about nodes is a flag of kube-apiserver, but a field that kubeadm does
// not know there may be meant as one.
func TestDocumentsAboutNodes(t *testing.T) {
	const head = "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: "
	const cluster = head + "ClusterConfiguration\n"
	for _, c := range []struct{ text, note, err string }{
		{cluster + head + "InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: 10.0.0.1}\npatches: {directory: /p}\n", "", ""},
		{cluster + head + "InitConfiguration\napiServer: {extraArgs: []}\n", `InitConfiguration: kubeadm has no field "apiServer"`, ""},
		{head + "JoinConfiguration\ncontrolPlane: {certificateKey: x}\n" + cluster, "", ""},
		{cluster + head + "JoinConfiguration\nextraArgs: {}\n", `JoinConfiguration: kubeadm has no field "extraArgs"`, ""},
		{head + "JoinConfiguration\ncontrolPlane: {}\n", "", "no ClusterConfiguration"},
	} {
		f, err := Read("a file", []byte(c.text), false)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.text, err, c.err)
			}
			continue
		}
		if notes := strings.Join(f.Notes, "\n"); err != nil || !strings.Contains(notes, c.note) || (notes == "") != (c.note == "") {
			t.Errorf("%s: error %v, notes %q, want %q", c.text, err, notes, c.note)
		}
	}
}

package config

import (
	"strings"
	"testing"
)

// A JoinConfiguration says where a node that joins is, unless there is an InitConfiguration.
func TestJoinConfiguration(t *testing.T) {
	const head = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: "
	const cluster = "---\n" + head + "ClusterConfiguration\n"
	const join = "---\n" + head + "JoinConfiguration\npatches: {directory: /p}\ncontrolPlane: {localAPIEndpoint: {advertiseAddress: 10.0.0.2, bindPort: 6443}}\n"
	const first = "---\n" + head + "InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: 10.0.0.1}\n"
	for _, c := range []struct{ text, advertise, patches, note, err string }{
		{join + cluster, "10.0.0.2", "/p", "", ""},
		{cluster + join + first, "10.0.0.1", "/p", "", ""},
		{first + cluster + join, "10.0.0.1", "/p", "", ""},
		{cluster + "---\n" + head + "JoinConfiguration\npatches: {directory: /p}\n", "", "", "gets no kube-apiserver", ""},
		{cluster + "---\n" + head + "JoinConfiguration\ncontrolPlane: {certificateKey: x, localApiEndpoint: {}}\n", "", "", `no field "controlPlane.localApiEndpoint"`, ""},
		{cluster + "---\n" + head + "JoinConfiguration\ncontrolPlane: {localAPIEndpoint: {advertiseAddress: 7}}\n", "", "", "", "localAPIEndpoint.advertiseAddress"},
		{join, "", "", "", "no ClusterConfiguration"},
	} {
		f, err := Read("a file", []byte(c.text), false)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.text, err, c.err)
			}
			continue
		}
		if notes := strings.Join(f.Notes, "\n"); err != nil || f.Advertise != c.advertise || f.Patches != c.patches || !strings.Contains(notes, c.note) || (notes == "") != (c.note == "") {
			t.Errorf("%s: error %v, %+v", c.text, err, f)
		}
	}
}

package ownership

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestOwnersAreOfWhatSomeServersLack(t *testing.T) {
	deployments := resource("apps", "v1", "deployments", "Deployment", true)
	classes := resource("storage.k8s.io", "v1", "volumeattributesclasses", "VolumeAttributesClass", false)
	readOnly := bundles
	readOnly.Verbs = []string{"get"}
	alpha := bundles
	alpha.Version = "v1alpha1"
	for name, c := range map[string]struct {
		served map[string]history.Document
		want   string
	}{
		"both kinds":                         {documents(bundles, requests), "clustertrustbundles podcertificaterequests configmaps"},
		"the preferred first":                {documents(classes, bundles), "clustertrustbundles configmaps"},
		"only with namespaces":               {documents(deployments), "deployments configmaps"},
		"cannot be created":                  {documents(readOnly, deployments), "deployments configmaps"},
		"the preferred version":              {documents(bundles, alpha), "clustertrustbundles configmaps"},
		"nothing differs":                    {documents(), ""},
		"the other has another version":      {map[string]history.Document{"a": {Resources: []history.Resource{bundles, configmap}}, "b": {Resources: []history.Resource{alpha, configmap}}}, ""},
		"only what we cannot make is skewed": {documents(resource("x.io", "v1", "things", "Thing", true)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := Choose(c.served)
			var got []string
			for _, r := range chosen {
				got = append(got, r.GVR.Resource)
			}
			if strings.Join(got, " ") != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// A kube-apiserver refuses invalid owners.
func TestOwnersAreValid(t *testing.T) {
	for _, k := range kinds {
		fields, err := k.fields("x")
		if err != nil || len(fields) == 0 {
			t.Errorf("%s: %v, %v", k.resource, fields, err)
		}
	}
	fields, err := trustBundle("x")
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode([]byte(fields["spec"].(map[string]any)["trustBundle"].(string)))
	if block == nil || len(rest) > 0 {
		t.Fatalf("not one PEM block: %v, %q", block, rest)
	}
	if authority, err := x509.ParseCertificate(block.Bytes); err != nil || !authority.IsCA || !authority.BasicConstraintsValid {
		t.Errorf("no authority: %v, %v", authority, err)
	}
	if fields, err = certificateRequest("x"); err != nil {
		t.Fatal(err)
	}
	der, err := base64.StdEncoding.DecodeString(fields["spec"].(map[string]any)["stubPKCS10Request"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if request, err := x509.ParseCertificateRequest(der); err != nil || request.CheckSignature() != nil {
		t.Errorf("no request with a signature: %v", err)
	}
}

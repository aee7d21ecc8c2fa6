package lifecycle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/skewproof/skewproof/internal/scenario"
)

// Get sends a GET and copies the answer. Any status except 200 is an error: the server is not
// ready.
func Get(ctx context.Context, client *http.Client, url string, into io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(into, response.Body)
	if response.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("GET %s: %s", request.URL.Path, response.Status), err)
	}
	return err
}

// VersionAt asks the kube-apiserver at a URL for its version, and for the minor version that it
// reports to emulate, such as "1.36". The latter is empty if the server reports none.
func VersionAt(ctx context.Context, client *http.Client, url string) (version, emulates string, err error) {
	var body bytes.Buffer
	err = Get(ctx, client, url+"/version", &body)
	var info apiversion.Info
	if err == nil {
		err = json.Unmarshal(body.Bytes(), &info)
	}
	if err != nil {
		return "", "", fmt.Errorf("ask for its version: %w", err)
	}
	if info.EmulationMinor != "" {
		emulates = info.EmulationMajor + "." + info.EmulationMinor
	}
	return info.GitVersion, emulates, nil
}

// Identity returns the apiserver identity of a kube-apiserver on a host with that name. It is a
// hash of two strings, each preceded by its length. Source: NewConfig in
// k8s.io/apiserver/pkg/server/config.go.
func Identity(hostname string) string {
	var data []byte
	for _, part := range []string{hostname, "kube-apiserver"} {
		data = binary.BigEndian.AppendUint16(data, uint16(len(part)))
		data = append(data, part...)
	}
	hash := sha256.Sum256(data)
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:16]))
}

// Subject returns the subject for a server with a setup, in a run about a subject. A server whose
// proxy is switched off is only a kube-apiserver, for any subject.
func Subject(run string, setup *scenario.Setup) string {
	switch {
	case setup == nil:
		return run
	case setup.Proxy == scenario.Off:
		return scenario.SubjectNone
	case setup.Proxy == scenario.On && run == scenario.SubjectNone, setup.Plain && run == scenario.SubjectReference:
		return scenario.SubjectBuiltin
	default:
		return run
	}
}

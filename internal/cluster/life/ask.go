package life

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/version"
)

// Get copies what is at a URL. Any answer but 200 is an error: a server that is not ready says so by its status.
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

// VersionAt asks the kube-apiserver at a URL for its version: one that is not what it is called, or behaves like another than it is told to, would make
// every verdict worthless. emulates is the minor version that it is told to behave like, "" for its own.
func VersionAt(ctx context.Context, client *http.Client, url, emulates string) (string, error) {
	var body bytes.Buffer
	err := Get(ctx, client, url+"/version", &body)
	var info version.Info
	if err == nil {
		err = json.Unmarshal(body.Bytes(), &info)
	}
	if err != nil {
		return "", fmt.Errorf("ask for its version: %w", err)
	}
	if does := info.EmulationMajor + "." + info.EmulationMinor; emulates != "" && does != emulates {
		return "", fmt.Errorf("it says that it emulates %q, and should emulate %s", does, emulates)
	}
	return info.GitVersion, nil
}

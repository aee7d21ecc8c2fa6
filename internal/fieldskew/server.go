package fieldskew

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/skewproof/skewproof/internal/history"
)

// Server is one kube-apiserver.
type Server interface {
	// Send sends a request. An error means that there is no answer.
	Send(ctx context.Context, r Request) (Answer, error)
}

// Request is a request for one object.
type Request struct {
	history.GVR
	Method    string // POST, GET or PUT
	Namespace string // empty for kinds without namespaces
	Name      string // empty for POST
	Object    any    // nil for GET
	DryRun    bool
}

// Answer is the answer to a request.
type Answer struct {
	Code     int  // 0 if the server broke off
	Object   tree // of an answer that is no refusal
	Refusal  metav1.Status
	Warnings []string
}

// OK reports whether the request was carried out.
func (a Answer) OK() bool { return a.Code/100 == 2 }

// HTTPServer is a server behind an HTTP client.
type HTTPServer struct {
	Client *http.Client
	URL    string
}

// maxAnswer is much larger than any answer.
const maxAnswer = 64 << 20

// Send implements [Server].
func (h HTTPServer) Send(ctx context.Context, r Request) (a Answer, err error) {
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if r.Namespace != "" {
		path += "/namespaces/" + r.Namespace
	}
	path += "/" + r.Resource
	if r.Name != "" {
		path += "/" + url.PathEscape(r.Name)
	}
	var content []byte
	if r.Object != nil {
		path += "?fieldManager=skewproof&fieldValidation=Warn"
		content = encode(r.Object)
		if r.DryRun {
			path += "&dryRun=All"
		}
	}
	code, header, body, err := h.do(ctx, r.Method, path, content)
	if broken := (http2.StreamError{}); errors.As(err, &broken) { // as where its handler panics
		a.Refusal.Message = "the server broke off"
		return a, nil
	} else if err != nil {
		return a, err
	}
	a.Code = code
	warnings, _ := utilnet.ParseWarningHeaders(header.Values("Warning"))
	for _, w := range warnings {
		a.Warnings = append(a.Warnings, w.Text)
	}
	slices.Sort(a.Warnings)
	if a.OK() {
		err = json.Unmarshal(body, &a.Object)
	} else if json.Unmarshal(body, &a.Refusal) != nil {
		a.Refusal.Message = strings.TrimSpace(string(body))
	}
	if err != nil {
		err = fmt.Errorf("%s %s%s: %w", r.Method, h.URL, path, err)
	}
	return a, err
}

func (h HTTPServer) do(ctx context.Context, method, path string, content []byte) (code int, header http.Header, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, h.URL+path, bytes.NewReader(content))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	response, err := h.Client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, response.Header, body, err
}

// Schemas reads the definitions of all kinds that the server has.
func (h HTTPServer) Schemas(ctx context.Context) (Schemas, error) {
	get := func(path string) ([]byte, error) {
		code, _, body, err := h.do(ctx, http.MethodGet, path, nil)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("it answered %d", code)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s%s: %w", h.URL, path, err)
		}
		return body, nil
	}
	body, err := get("/openapi/v3")
	if err != nil {
		return nil, err
	}
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(body, &index); err != nil {
		return nil, fmt.Errorf("read the index of OpenAPI documents: %w", err)
	}
	all := Schemas{}
	for _, path := range slices.Sorted(maps.Keys(index.Paths)) {
		body, err := get(index.Paths[path].ServerRelativeURL)
		if err == nil {
			err = all.Add(body)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

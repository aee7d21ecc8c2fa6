#!/usr/bin/env bash
# client-go v0.37.2: an answer of 500 or more with Retry-After makes the client send any request
# again, writes included, up to ten times and without a word to its caller. If the server, or
# something between, has answered so after the write was carried out, the caller of one Create gets
# AlreadyExists for its own object, and the caller of one Delete gets NotFound.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// server carries out the first write, and answers it with a server timeout and a Retry-After.
type server struct {
	mu       sync.Mutex
	requests []string
	exists   bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body)
	first := len(s.requests) == 0
	s.requests = append(s.requests, r.Method)
	status := apierrors.NewServerTimeout(schema.GroupResource{Resource: "configmaps"}, "create", 1).Status()
	switch {
	case first:
		s.exists = r.Method == http.MethodPost
		w.Header().Set("Retry-After", "1")
	case r.Method == http.MethodPost && s.exists:
		status = apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, "mine").Status()
	case r.Method == http.MethodDelete:
		status = apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "mine").Status()
	default:
		status = metav1.Status{Status: metav1.StatusSuccess, Code: 200}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	status.Kind, status.APIVersion = "Status", "v1"
	_ = json.NewEncoder(w).Encode(status)
}

func main() {
	ctx := context.Background()
	changed := false
	for _, try := range []struct {
		name string
		do   func(kubernetes.Interface) error
		is   func(error) bool
	}{
		{"create", func(c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
			return err
		}, apierrors.IsAlreadyExists},
		{"delete", func(c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps("default").Delete(ctx, "mine", metav1.DeleteOptions{})
		}, apierrors.IsNotFound},
	} {
		s := &server{}
		at := httptest.NewServer(s)
		client, err := kubernetes.NewForConfig(&rest.Config{Host: at.URL})
		if err != nil {
			panic(err)
		}
		err = try.do(client)
		fmt.Printf("%s: requests %v, the caller's error: %v\n", try.name, s.requests, err)
		changed = changed || len(s.requests) != 2 || !try.is(err)
		at.Close()
	}
	if changed {
		fmt.Println("CHANGED")
		os.Exit(1)
	}
}
EOF
go mod init example.org/finding >/dev/null 2>&1
go get k8s.io/client-go@v0.37.2 k8s.io/api@v0.37.2 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go list -m k8s.io/client-go
go run .

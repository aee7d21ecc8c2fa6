// Package libraries has the source of programs that use client libraries as people do: one program
// for each library, in directories of _programs, with a go.mod and a go.sum, or a package.json and
// a package-lock.json, for each version of the library that it is built with. The go command skips
// these directories: each program is a module of its own.
package libraries

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

//go:embed _programs
var programs embed.FS

const root = "_programs"

// shared is the file in _programs that all programs in Go have.
const shared = "shared.go"

// manifests are the files of one version of a program, by their extension in _programs. sources are
// the extensions of the files that all versions share.
var (
	manifests = map[string]string{".mod": "go.mod", ".sum": "go.sum", ".json": "package.json", ".lock": "package-lock.json"}
	sources   = []string{".go", ".mjs"}
)

// Versions are the versions of a library that its program is built with, the oldest first; none of
// a library that there is not.
func Versions(library string) (all []string) {
	entries, err := programs.ReadDir(path.Join(root, library))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if ext := path.Ext(e.Name()); ext == ".mod" || ext == ".json" {
			all = append(all, strings.TrimSuffix(e.Name(), ext))
		}
	}
	slices.SortFunc(all, semver.Compare)
	return all
}

// File is one file of a program.
type File struct {
	// Name has no directory.
	Name    string
	Content []byte
}

// Source returns the source of the program of a library at one of its [Versions], with the files
// that name its dependencies, by name. The error lists the existing versions.
func Source(library, version string) (files []File, err error) {
	if !slices.Contains(Versions(library), version) {
		return nil, fmt.Errorf("skewproof has a program for %s of %s only", library, strings.Join(Versions(library), ", "))
	}
	dir := path.Join(root, library)
	entries, err := programs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		as, ext := e.Name(), path.Ext(e.Name())
		switch {
		case strings.TrimSuffix(as, ext) == version && manifests[ext] != "":
			as = manifests[ext]
		case !slices.Contains(sources, ext):
			continue
		}
		content, err := programs.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, File{as, content})
	}
	if slices.ContainsFunc(files, func(f File) bool { return f.Name == "go.mod" }) {
		content, err := programs.ReadFile(path.Join(root, shared))
		if err != nil {
			return nil, err
		}
		files = append(files, File{shared, content})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// Hash is the SHA-256, in hexadecimal, over the names and contents of files.
func Hash(files []File) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s %d\n%s", f.Name, len(f.Content), f.Content)
	}
	return hex.EncodeToString(h.Sum(nil))
}

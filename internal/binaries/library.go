package binaries

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/libraries"
	"github.com/skewproof/skewproof/proxy"
)

// source returns skewproof's own files in the module of a build, by their slash-separated paths.
// There are none if the program is upstream's.
func source(ref Ref) ([]libraries.File, error) {
	switch of := programs[ref.Component]; {
	case of.library:
		return libraries.Source(string(ref.Component), string(ref.Version))
	case of.reference:
		return referenceSource(ref.Version)
	case of.main != "":
		return []libraries.File{{Name: "main.go", Content: []byte(of.main)}}, nil
	}
	return nil, nil
}

// SourceHash returns the hash of skewproof's own files, or "" if there are none.
func SourceHash(ref Ref) string {
	files, err := source(ref)
	if err != nil || len(files) == 0 || programs[ref.Component].project == etcd {
		return ""
	}
	return libraries.Hash(files)
}

// writeFiles writes skewproof's own files.
func writeFiles(src string, ref Ref) error {
	files, err := source(ref)
	if err != nil {
		return err
	}
	for _, f := range files {
		at := filepath.Join(src, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, f.Content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// serverFolder has the main package of the reference kube-apiserver. Each folder in it has files
// for the versions from that minor version on.
const serverFolder = "apiserver/_server"

// referenceSource returns the library of the reference proxy, and the main package for a version.
func referenceSource(v Version) ([]libraries.File, error) {
	var files []libraries.File
	since := map[string]string{} // the minor version of each file of the main package
	err := fs.WalkDir(proxy.Source, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "source.go" {
			return err // source.go has what is read here
		}
		content, err := proxy.Source.ReadFile(name)
		if err != nil {
			return err
		}
		rest, main := strings.CutPrefix(name, serverFolder+"/")
		if !main {
			files = append(files, libraries.File{Name: "proxy/" + name, Content: content})
			return nil
		}
		minor, file := path.Split(rest)
		minor = strings.TrimSuffix(minor, "/")
		if minor != "" && semver.Compare(minor, string(v)) > 0 {
			return nil
		}
		if before, ok := since[file]; ok { // of an older version
			if semver.Compare(before, minor) > 0 {
				return nil
			}
			files = slices.DeleteFunc(files, func(f libraries.File) bool { return f.Name == file })
		}
		since[file] = minor
		files = append(files, libraries.File{Name: file, Content: content})
		return nil
	})
	if err == nil && len(since) < 2 {
		err = fmt.Errorf("there is no reference proxy for %s: it is for %s and later", v, OldestReference)
	}
	return files, err
}

// OldestReference is the oldest minor version that can be built with the reference proxy.
const OldestReference = "v1.30"

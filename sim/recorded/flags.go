package recorded

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// flagsFolder holds, beside the documents, the flags and feature gates of each kube-apiserver.
// Package gates reads them.
const flagsFolder = "flags"

//go:embed documents/flags/*.json
var flagFiles embed.FS

// ErrNoFlags is wrapped by errors about releases whose flags and feature gates are not recorded.
var ErrNoFlags = errors.New("its flags and feature gates are not recorded")

// Flags returns the recording of the flags and feature gates of a release: from the directories in
// their order, else from this repository. If the release itself is not recorded, the nearest patch
// of its minor version stands in. of is the release that the recording is of.
func Flags(name string, directories ...string) (body []byte, of string, err error) {
	found := files(flagFiles, flagsFolder, directories)
	of = Nearest(name, slices.Collect(maps.Keys(found)))
	if of == "" {
		return nil, "", fmt.Errorf("%s: %w", name, ErrNoFlags)
	}
	if body, err = fs.ReadFile(found[of], flagsFolder+"/"+of+".json"); err != nil {
		return nil, "", fmt.Errorf("read the flags of %s: %w", of, err)
	}
	return body, of, nil
}

// files finds the JSON files of a folder of recordings, by their names: in the directories in their
// order, else in this repository.
func files(embedded fs.FS, folder string, directories []string) map[string]fs.FS {
	own, err := fs.Sub(embedded, "documents")
	if err != nil { // the path is constant
		panic(err)
	}
	var all []fs.FS
	for _, dir := range directories {
		all = append(all, os.DirFS(dir))
	}
	found := map[string]fs.FS{}
	for _, one := range slices.Backward(append(all, own)) { // the first one wins
		paths, err := fs.Glob(one, folder+"/*.json")
		if err != nil { // the pattern is constant
			panic(err)
		}
		for _, path := range paths {
			found[strings.TrimSuffix(strings.TrimPrefix(path, folder+"/"), ".json")] = one
		}
	}
	return found
}

// Nearest returns a version itself, if it is among others. Else it returns the newest older patch
// of its minor version, or else the oldest patch of it, or "".
func Nearest(version string, among []string) (nearest string) {
	for _, v := range slices.SortedFunc(slices.Values(among), semver.Compare) {
		if semver.MajorMinor(v) == semver.MajorMinor(version) && (nearest == "" || semver.Compare(v, version) <= 0) {
			nearest = v
		}
	}
	return nearest
}

// WriteFlags leaves the recorded flags and feature gates of a release in a directory.
func WriteFlags(dir, name string, body []byte) error {
	return write(dir, flagsFolder, name, body)
}

func write(dir, folder, name string, body []byte) error {
	if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
		return fmt.Errorf("create the directory of recordings: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, folder, name+".json"), body, 0o644); err != nil {
		return fmt.Errorf("write a recording: %w", err)
	}
	return nil
}

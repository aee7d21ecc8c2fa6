package binaries

import (
	"os"
	"path/filepath"

	"github.com/skewproof/skewproof/internal/libraries"
)

// sourceHash returns the hash of the source of a component whose source is skewproof's own, because
// the program may change while the version of its library does not. It is empty for all other
// components, and for versions without a program.
func sourceHash(ref Ref) string {
	of := programs[ref.Component]
	if of.project == kubernetesFlags {
		return libraries.Hash([]libraries.File{{Name: "main.go", Content: []byte(of.main)}})
	}
	if !of.library {
		return ""
	}
	files, err := libraries.Source(string(ref.Component), string(ref.Version))
	if err != nil {
		return ""
	}
	return libraries.Hash(files)
}

// writeLibraryProgram writes the source of a program that uses a library.
func writeLibraryProgram(src string, ref Ref) error {
	files, err := libraries.Source(string(ref.Component), string(ref.Version))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(src, f.Name), f.Content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

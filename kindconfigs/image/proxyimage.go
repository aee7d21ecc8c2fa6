package main

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// modulesFile is the list of the modules in the program, as 'go version -m' shows it. It is the
// bill of materials of the image: the image has nothing else in it.
const modulesFile = "usr/share/skewproof/modules.txt"

// proxyUser is neither root nor anybody on a node. The static pod of an operator overrides it,
// because only root can read the keys that kubeadm makes.
const proxyUser = "65532:65532"

// writeProxyImage writes the image of the reference proxy to the file to. The image has the program
// and a list of its modules in it, and nothing else: no shell, no libraries and no system
// authorities. The same program always gives the same bytes.
func writeProxyImage(to string, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("make the image of the reference proxy: want one argument, the program (such as bin/skewproof), not %q", args)
	}
	program := args[0]
	info, err := buildinfo.ReadFile(program)
	if err == nil {
		err = static(program)
	}
	if err != nil {
		return fmt.Errorf("make the image of the reference proxy from %s: %w; 'make build' makes a program that fits", program, err)
	}
	config := imageConfig{Architecture: setting(info, "GOARCH")}
	config.Config.User = proxyUser
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title":  "skewproof proxy",
		"org.opencontainers.image.source": "https://" + info.Main.Path,
	}
	tags := []string{kind.OperatorImage}
	if revision := setting(info, "vcs.revision"); revision != "" {
		config.Config.Labels["org.opencontainers.image.revision"] = revision
	}
	// A tag cannot have the "+dirty" of a program that was built with changes.
	if version := info.Main.Version; semver.IsValid(version) && semver.Build(version) == "" {
		config.Config.Labels["org.opencontainers.image.version"] = version
		name, _, _ := strings.Cut(kind.OperatorImage, ":")
		tags = append(tags, name+":"+version)
	}
	modules := file{name: modulesFile, mode: 0o644, content: []byte(info.String())}
	if err := writeImage(to, tags, program, "skewproof", config, []file{modules}); err != nil {
		return fmt.Errorf("write the image of the reference proxy to %s: %w", filepath.Clean(to), err)
	}
	say("%s: %s for %s; load it with 'docker load --input %s' or 'ctr -n k8s.io images import %s'",
		to, strings.Join(tags, ", "), config.Architecture, to, to)
	return nil
}

// setting returns a setting of the build; "" if it is not recorded.
func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// static returns an error unless the program needs no dynamic linker: the image has none.
func static(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP {
			return errors.New("it is linked dynamically, and the image has no libraries")
		}
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return fmt.Errorf("it is not an executable (%s)", strings.TrimPrefix(f.Type.String(), "ET_"))
	}
	return nil
}

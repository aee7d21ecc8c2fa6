package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// writeReferenceImage writes the image of a kube-apiserver with the reference proxy to the file to.
// In a cluster that kubeadm made, the image takes the place of that of the release. The same
// program always gives the same bytes.
func (b *builder) writeReferenceImage(ctx context.Context, to string, versions []string) error {
	if len(versions) != 1 {
		return fmt.Errorf("%w: make the image of a kube-apiserver with the reference proxy: want one version, not %q", binaries.ErrBadRef, versions)
	}
	image := nestedImage{kind.ReferenceImage + ":" + versions[0], binaries.KubeAPIServerReference, versions[0]}
	program, err := b.program(ctx, image, "")
	if err == nil {
		err = writeArchive(to, image.tag, program, image.program())
	}
	if err != nil {
		return fmt.Errorf("make the image %s: %w", image.tag, err)
	}
	to = filepath.Clean(to)
	say("%s: %s; load it with 'docker load --input %[1]s' or 'ctr -n k8s.io images import %[1]s'", to, image.tag)
	return nil
}

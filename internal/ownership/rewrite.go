package ownership

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/scenario"
)

// rewritten is the annotation that a rewrite adds.
const rewritten = "skewproof.dev/rewritten"

// patches are all ways to patch, with the added content of each. None removes anything. IDENTITY
// and NAME in a body stand for the identity and the name of the object, which apply needs.
var patches = []struct {
	way  types.PatchType
	body string
}{
	{types.MergePatchType, `{"metadata":{"annotations":{"` + rewritten + `":"merge"}}}`},
	{types.JSONPatchType, `[{"op":"add","path":"/metadata/annotations/skewproof.dev~1rewritten","value":"json"}]`},
	{types.StrategicMergePatchType, `{"metadata":{"annotations":{"` + rewritten + `":"strategic"}}}`},
	{types.ApplyPatchType, `{IDENTITY,"metadata":{"name":"NAME","annotations":{"` + rewritten + `":"apply"}}}`},
}

// Rewrite implements [step.Objects].
func (c *Objects) Rewrite(ctx context.Context, o scenario.Objects, through string) error {
	client, err := c.client(through)
	if err != nil {
		return fmt.Errorf("prepare to rewrite %s through %s: %w", o.Name, through, err)
	}
	for _, of := range c.owners[o.Name] {
		if err := rewrite(ctx, client.Resource(of.gvr()).Namespace(of.namespace), of); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// client is the administrator's client of a server, over the clients' link.
func (c *Objects) client(server string) (dynamic.Interface, error) {
	config, err := c.config(server)
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

func (c *Objects) config(server string) (*rest.Config, error) {
	url, err := c.cluster.URL(server)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.cluster.Admin())
	config.Host = url
	return config, nil
}

// rewrite reads an object, writes it back with one more annotation, and patches it in every way. A
// caller needs the errors only if the time is over: a refused request changes nothing, and
// invariants judge the content of etcd.
func rewrite(ctx context.Context, api dynamic.ResourceInterface, of owner) error {
	attempt, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	read, err := api.Get(attempt, of.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read %s: %w", of, err)
	}
	annotations := read.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[rewritten] = "update"
	read.SetAnnotations(annotations)
	_, err = api.Update(attempt, read, metav1.UpdateOptions{})
	errs := []error{err}
	identity := fmt.Sprintf(`"apiVersion":%q,"kind":%q`, apiVersion(of.Resource), of.Kind)
	for _, p := range patches {
		var options metav1.PatchOptions
		if p.way == types.ApplyPatchType {
			force := true
			options = metav1.PatchOptions{FieldManager: "skewproof-rewrite", Force: &force}
		}
		body := strings.NewReplacer("IDENTITY", identity, "NAME", of.name).Replace(p.body)
		if _, err := api.Patch(attempt, of.name, p.way, []byte(body), options); err != nil && !apierrors.IsUnsupportedMediaType(err) {
			errs = append(errs, fmt.Errorf("patch %s by %s: %w", of, p.way, err))
		}
	}
	return errors.Join(errs...)
}

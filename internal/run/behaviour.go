package run

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// controllersTime is how long controllers have after their start.
const controllersTime = time.Minute

// Behaviour records what a version does and permits, as package recorded keeps it. It starts one
// kube-apiserver of the version with its default flags in a sandbox, then kube-controller-manager
// of the version with those of kubeadm, and asks the authorizer about all kinds, which are named as
// by [recorded.Kinds].
func Behaviour(ctx context.Context, version string, kinds []string, own binaries.Overrides, progress io.Writer) ([]byte, error) {
	got, err := recording{versions: []string{version}, apis: new(""), want: wanted{Kinds: kinds}}.carryOut(ctx, own, progress, behaviourFile)
	if err != nil {
		return nil, err
	}
	return got[0], nil
}

// writeBehaviour records the behaviour of the version of a server, which alone is up.
func (d Dir) writeBehaviour(ctx context.Context, made *local.Cluster, server history.Server, kinds []string, status func(string, ...any)) error {
	config, err := made.Direct(server.Name)
	if err != nil {
		return err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	var b recorded.Behaviour
	if b.Created, err = createdBy(ctx, made, config, server, status); err != nil {
		return fmt.Errorf("record what controllers %s create: %w", server.Version, err)
	}
	status("who may do what with %d kinds?", len(kinds))
	b.Ask(kinds)
	if err := askAuthorizer(ctx, config, kinds, &b); err != nil {
		return fmt.Errorf("record what %s permits: %w", server.Version, err)
	}
	return d.writeJSON(d.recorded(behaviourFile), b)
}

// object is an API object.
type object struct {
	history.GVR
	namespace, name string
}

// createdBy starts the controllers for a time, and returns what they created.
func createdBy(ctx context.Context, made *local.Cluster, config *rest.Config, server history.Server, status func(string, ...any)) ([]recorded.Created, error) {
	before, err := objects(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := made.StartCandidate(ctx, server.Version, server.Name); err != nil {
		return nil, err
	}
	status("controllers %s run for %s", server.Version, controllersTime)
	select {
	case <-time.After(controllersTime):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	after, err := objects(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := made.StopControllers(ctx); err != nil {
		return nil, err
	}
	requests, err := made.Requests(time.Now(), func(string) bool { return false })
	if err != nil {
		return nil, err
	}
	return created(after.Difference(before), requests), nil
}

// created groups new objects by their resource. Objects that nobody created by a request are those
// of kube-apiserver itself.
func created(added sets.Set[object], requests []history.Request) []recorded.Created {
	all := []recorded.Created{}
	for o := range added {
		var by []string
		for _, r := range requests { // they do not name the object
			if r.Status == http.StatusCreated && !r.Own && r.GVR.Group == o.Group && r.GVR.Resource == o.Resource && r.Namespace == o.namespace {
				by = append(by, r.User)
			}
		}
		i := slices.IndexFunc(all, func(c recorded.Created) bool { return c.GVR == o.GVR })
		switch {
		case len(by) == 0:
			continue
		case i < 0:
			i, all = len(all), append(all, recorded.Created{GVR: o.GVR})
		}
		name := strings.TrimPrefix(o.namespace+"/"+varying.ReplaceAllString(o.name, "*"), "/")
		all[i].Names, all[i].By = append(all[i].Names, name), append(all[i].By, by...)
	}
	for i, c := range all {
		slices.Sort(c.Names)
		slices.Sort(c.By)
		all[i].Names, all[i].By = slices.Compact(c.Names), slices.Compact(c.By)
	}
	slices.SortFunc(all, func(a, b recorded.Created) int {
		return strings.Compare(a.Resource+"."+a.Group, b.Resource+"."+b.Group)
	})
	return all
}

// varying is a part of a name that differs between clusters: a hash.
var varying = regexp.MustCompile(`[0-9a-f]{10,}`)

// objects lists all objects, each in the version that the server prefers.
func objects(ctx context.Context, config *rest.Config) (all sets.Set[object], err error) {
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := served.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	listed, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists))
	if err != nil {
		return nil, err
	}
	all = sets.New[object]()
	for gvr := range listed {
		found, err := client.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", gvr, err)
		}
		for _, item := range found.Items {
			all.Insert(object{history.GVR(gvr), item.Namespace, item.Name})
		}
	}
	return all, nil
}

// related is the name of the node that asks, and of all objects that have to do with it ([ofNode]).
// unrelated is the name of others.
const (
	related   = "n1"
	unrelated = "n2"
)

// subjects are users without rights of their own.
var subjects = map[recorded.Subject]authorizationv1.SubjectAccessReviewSpec{
	recorded.Node: {User: "system:node:" + related, Groups: []string{"system:nodes", "system:authenticated"}},
	recorded.ServiceAccount: {User: "system:serviceaccount:default:x",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"}},
	recorded.User: {User: "x", Groups: []string{"system:authenticated"}},
}

// askAuthorizer asks what each subject may do with each kind.
func askAuthorizer(ctx context.Context, config *rest.Config, kinds []string, b *recorded.Behaviour) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := relate(ctx, client); err != nil {
		return err
	}
	b.May, b.Related = map[recorded.Subject]map[string]string{}, map[string]string{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, name := range kinds {
		group.Go(func() error {
			for subject := range subjects {
				var all, own []string
				for _, verb := range verbsOf(recorded.ParseKind(name)) {
					allowed, err := may(ctx, client, subject, recorded.ParseKind(name), verb, false)
					if allowed {
						all = append(all, verb)
					} else if err == nil && subject == recorded.Node {
						if allowed, err = may(ctx, client, subject, recorded.ParseKind(name), verb, true); allowed {
							own = append(own, verb)
						}
					}
					if err != nil {
						return err
					}
				}
				mu.Lock()
				if len(all) > 0 && b.May[subject] == nil {
					b.May[subject] = map[string]string{}
				}
				if len(all) > 0 {
					b.May[subject][name] = strings.Join(all, " ")
				}
				if len(own) > 0 {
					b.Related[name] = strings.Join(own, " ")
				}
				mu.Unlock()
			}
			return nil
		})
	}
	return group.Wait()
}

func verbsOf(k recorded.Kind) []string {
	if k.Subresource != "" {
		return []string{"get", "create", "update", "patch"}
	}
	return []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
}

// may asks whether a subject may use a verb with any object of a kind, or with one that has to do
// with the node: by its field or by its name, in any of the namespaces.
func may(ctx context.Context, client kubernetes.Interface, s recorded.Subject, k recorded.Kind, verb string, mine bool) (bool, error) {
	a := authorizationv1.ResourceAttributes{Group: k.Group, Version: "*", Resource: k.Resource, Subresource: k.Subresource, Verb: verb}
	all := []authorizationv1.ResourceAttributes{a}
	switch {
	case mine:
		all[0].FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
			{Key: "spec.nodeName", Operator: metav1.FieldSelectorOpIn, Values: []string{related}}}}
		a.Name = related
		for _, a.Namespace = range []string{"", metav1.NamespaceDefault, corev1.NamespaceNodeLease} {
			all = append(all, a)
		}
	case !slices.Contains([]string{"list", "watch", "deletecollection"}, verb):
		all[0].Namespace, all[0].Name = metav1.NamespaceDefault, unrelated
	}
	for _, a := range all {
		review := &authorizationv1.SubjectAccessReview{Spec: subjects[s]}
		review.Spec.ResourceAttributes = &a
		got, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil || got.Status.Allowed {
			return err == nil, err
		}
	}
	return false, nil
}

// ofNode are a pod on the node, and objects of every kind that the graph of the node authorizer
// knows, with the paths at which they are created. Source: k8s.io/kubernetes
// plugin/pkg/auth/authorizer/node/graph.go.
var ofNode = [][2]string{
	{"/api/v1/namespaces/default/serviceaccounts", `{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "n1"}}`},
	{"/api/v1/namespaces/default/persistentvolumeclaims", `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "n1"},
		"spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "n1", "resources": {"requests": {"storage": "1Gi"}}}}`},
	{"/api/v1/persistentvolumes", `{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "n1"}, "spec": {
		"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/n1"},
		"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "n1"}}}`},
	{"/apis/storage.k8s.io/v1/volumeattachments", `{"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "n1"},
		"spec": {"attacher": "n1", "nodeName": "n1", "source": {"persistentVolumeName": "n1"}}}`},
	{"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", `{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
		"metadata": {"name": "n1"}, "spec": {}}`},
	{"/api/v1/namespaces/default/pods", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n1"}, "spec": {
		"nodeName": "n1", "serviceAccountName": "n1", "containers": [{"name": "n1", "image": "n1"}],
		"resourceClaims": [{"name": "n1", "resourceClaimName": "n1"}], "volumes": [{"name": "a", "secret": {"secretName": "n1"}},
		{"name": "b", "configMap": {"name": "n1"}}, {"name": "c", "persistentVolumeClaim": {"claimName": "n1"}}]}}`},
}

// relate creates the objects of the node, and waits until the graph of the node authorizer has
// them. It leaves out objects of kinds that the version does not serve.
func relate(ctx context.Context, client kubernetes.Interface) error {
	for _, o := range ofNode {
		post := client.CoreV1().RESTClient().Post().AbsPath(o[0]).SetHeader("Content-Type", runtime.ContentTypeJSON).Body([]byte(o[1]))
		if err := post.Do(ctx).Error(); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("create an object of a node at %s: %w", o[0], err)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		for _, kind := range []string{"secrets", "configmaps", "persistentvolumeclaims", "persistentvolumes"} {
			if allowed, err := may(ctx, client, recorded.Node, recorded.ParseKind(kind), "get", true); err != nil || !allowed {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the node authorizer knows the pod of a node: %w", err)
	}
	return nil
}

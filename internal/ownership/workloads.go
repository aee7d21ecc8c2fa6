package ownership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/skewproof/skewproof/internal/cluster/etcd"
	"github.com/skewproof/skewproof/internal/fieldskew"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// CreateWorkloads implements [step.Objects]. A server may refuse a workload: then it has lost no
// field. It is an error if it refuses all of them.
func (c *Objects) CreateWorkloads(ctx context.Context, o scenario.Objects, through string) error {
	made, err := c.workloads(ctx, o)
	if err == nil {
		err = c.createNamespace(ctx, o.Name)
	}
	if err != nil {
		return fmt.Errorf("create workloads in %s: %w", o.Name, err)
	}
	config, err := c.config(through)
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	var refused []error
	for i, request := range made {
		answer, err := c.write(ctx, fieldskew.APIServer{Interface: client.RESTClient()}, request)
		if err == nil && !answer.OK() {
			err = fmt.Errorf("it answered %d: %s", answer.Code, answer.Refusal.Message)
		}
		if err != nil {
			err = fmt.Errorf("create the %s with %q in %s through %s: %w", o.Workloads[i].Kind, o.Workloads[i].Field, o.Name, through, err)
		}
		switch {
		case err == nil:
		case answer.Code == http.StatusUnprocessableEntity || answer.Code == http.StatusBadRequest:
			refused = append(refused, err)
		default:
			return err
		}
	}
	if len(refused) == len(made) {
		return errors.Join(refused...)
	}
	return nil
}

// write creates an object with strict validation of fields, and records the fields that the answer
// lacks.
func (c *Objects) write(ctx context.Context, to fieldskew.Server, r fieldskew.Request) (fieldskew.Answer, error) {
	attempt, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.Method, r.Validation, r.AuditID = http.MethodPost, metav1.FieldValidationStrict, uuid.NewString()
	answer, err := to.Send(attempt, r)
	w := history.Written{ID: r.AuditID}
	if answer.OK() {
		w.Lost = lost(r.Object, answer.Object)
	}
	c.record(w)
	return answer, err
}

// lost returns the paths of the fields that a request names with a value and an answer lacks.
func lost(named, answered any) []string {
	has := etcd.Paths(answered)
	return slices.DeleteFunc(etcd.Paths(named), func(path string) bool { return slices.Contains(has, path) })
}

// workloads makes the objects: such that the first and the last server accept them, which are of
// different versions, if any servers are.
func (c *Objects) workloads(ctx context.Context, o scenario.Objects) (all []fieldskew.Request, err error) {
	var sides [2]fieldskew.Side
	for i, server := range []string{c.servers[len(c.servers)-1], c.servers[0]} {
		config, err := c.cluster.Direct(server)
		if err != nil {
			return nil, err
		}
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return nil, err
		}
		if sides[i], err = fieldskew.NewSide(server, client); err != nil {
			return nil, err
		}
	}
	for i, w := range o.Workloads {
		made, err := fieldskew.Object(ctx, sides, fieldskew.Resource{GVR: w.GVR, Kind: w.Kind, Namespaced: true}, w.Field)
		if err != nil {
			return nil, err
		}
		made["metadata"].(map[string]any)["name"] = fmt.Sprintf("%s-%d", strings.ToLower(w.Kind), i)
		all = append(all, fieldskew.Request{GVR: w.GVR, Namespace: o.Name, Object: made})
	}
	return all, nil
}

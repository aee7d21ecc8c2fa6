package fieldskew

import (
	"context"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trial is an object and the answers of both servers to it.
type trial struct {
	object  any
	answers [2]Answer
	// supports are the values that a server offered instead of the one at the tested path.
	supports []string
	last     string // the last refusal
	// forbidden is true if a server refused any value at the tested path.
	forbidden bool
	folded    bool
}

// accepted is how many servers accepted the object. If one broke off, nothing is known.
func (t trial) accepted() (n int) {
	for _, a := range t.answers {
		switch {
		case a.Code == 0:
			return 0
		case a.OK():
			n++
		}
	}
	return n
}

// try sends an object, repairs it as the refusals say, and sends it again, until both servers
// accept it or there is nothing left to repair. It returns what the most servers accepted.
func (s *sweep) try(ctx context.Context, r Resource, a *attempt) (best trial, err error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return best, context.Cause(ctx)
	}
	var supports []string
	last, forbidden := "", false
	for round := range maxRepairs {
		t := trial{object: a.object}
		if t.answers, err = s.send(ctx, r, a.object, true); err != nil {
			return best, err
		}
		if round == 0 || t.accepted() > best.accepted() {
			best = t
		}
		changed := false
		forbidden = false
		for _, answer := range slices.Backward(t.answers[:]) {
			if !answer.OK() {
				last = answer.Refusal.Message
				for _, message := range a.says(answer.Refusal, metav1.CauseTypeFieldValueNotSupported) {
					supports = append(supports, supported(message)...)
				}
				forbidden = forbidden || len(a.says(answer.Refusal, metav1.CauseTypeForbidden)) > 0
				changed = changed || !a.once && s.repair(a, answer.Refusal)
			}
		}
		if best.accepted() == 2 || !changed {
			break
		}
	}
	slices.Sort(supports)
	best.last, best.forbidden, best.supports = last, forbidden, slices.Compact(supports)
	return best, nil
}

// These are places in every object.
var (
	itsName     = []string{"metadata", "name"}
	itsRevision = []string{"metadata", "resourceVersion"}
)

// request is a request that creates an object, or updates one through a subresource.
func (r Resource) request(object any) Request {
	q := Request{GVR: r.GVR, Method: http.MethodPost, Object: object, Namespace: r.namespace()}
	if r.Updates {
		q.Method = http.MethodPut
	}
	if r.Of != nil {
		of, _ := get(object, itsName)
		q.Name, _ = of.(string)
	}
	return q
}

// send sends an object to both servers, to create it or to update it through a subresource.
func (s *sweep) send(ctx context.Context, r Resource, object any, dryRun bool) (answers [2]Answer, err error) {
	group, ctx := errgroup.WithContext(ctx)
	for i, side := range s.sides {
		group.Go(func() (err error) {
			q := r.request(object)
			q.DryRun = dryRun
			answers[i], err = side.Server.Send(ctx, q)
			if err == nil && r.Updates && answers[i].Code == http.StatusConflict { // a server wrote it, too
				read := Request{GVR: r.Of.GVR, Method: http.MethodGet, Namespace: q.Namespace, Name: q.Name}
				var now Answer
				if now, err = side.Server.Send(ctx, read); err == nil && now.OK() {
					revision, _ := get(now.Object, itsRevision)
					q.Object = put(object, itsRevision, 0, revision, nil)
					answers[i], err = side.Server.Send(ctx, q)
				}
			}
			if sent, _ := object.(tree); answers[i].OK() && answers[i].Object["kind"] != sent["kind"] {
				answers[i].Object = sent // a Status says only that it was accepted
			}
			return err
		})
	}
	return answers, group.Wait()
}

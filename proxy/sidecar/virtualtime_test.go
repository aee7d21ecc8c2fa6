package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// moment is a step of a test in virtual time: after a time, there have been so many questions.
type moment struct {
	after time.Duration
	asked int
}

// The answer to a SubjectAccessReview counts for authorizedFor, whether it is yes or no, and not
// longer. No answer counts for no time.
func TestAnswersOfReviewsAreKeptForATime(t *testing.T) {
	for name, c := range map[string]struct {
		allowed bool
		err     error
		moments []moment
	}{
		"yes":       {allowed: true, moments: []moment{{0, 1}, {authorizedFor - time.Millisecond, 1}, {2 * time.Millisecond, 2}, {time.Millisecond, 2}}},
		"no":        {moments: []moment{{0, 1}, {authorizedFor - time.Millisecond, 1}, {2 * time.Millisecond, 2}, {time.Millisecond, 2}}},
		"no answer": {err: errors.New("out of reach"), moments: []moment{{0, 1}, {0, 2}, {time.Second, 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1", QPS: -1, Transport: fakeTransport(func(r *http.Request) (*http.Response, error) {
					asked++
					if c.err != nil {
						return nil, c.err
					}
					answer := answers(http.StatusCreated, fmt.Sprintf(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":%t}}`, c.allowed))
					answer.Header = http.Header{"Content-Type": {"application/json"}}
					return answer, nil
				})})
				if err != nil {
					t.Fatal(err)
				}
				a, err := newAuthorization(client.AuthorizationV1())
				if err != nil {
					t.Fatal(err)
				}
				for i, m := range c.moments {
					time.Sleep(m.after)
					r := httptest.NewRequest(http.MethodGet, farAway, nil)
					info, err := infos.NewRequestInfo(r)
					if err != nil {
						t.Fatal(err)
					}
					ctx := apirequest.WithRequestInfo(apirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}), info)
					refusal, err := a.authorize(r.WithContext(ctx))
					if (refusal == nil && err == nil) != c.allowed || (err != nil) != (c.err != nil) {
						t.Errorf("question %d: %v, %v", i+1, refusal, err)
					}
					if asked != m.asked {
						t.Errorf("after question %d, the server was asked %d times, want %d", i+1, asked, m.asked)
					}
				}
				if a.reviews.Used() != 0 {
					t.Errorf("%d reviews still count", a.reviews.Used())
				}
			})
		})
	}
}

// The sidecar asks every credentialsEvery whether its credentials are accepted; every
// credentialsRetry while they are not, or while it does not know; and soon after a suspicion.
func TestOwnCredentialsAreAskedForInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, asked, name := fake.NewClientset(), 0, selfUser.Name
		var failure error
		var mu sync.Mutex // of these
		client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: name}}}, failure
		})
		own := newOwnCredentials(client.AuthenticationV1().SelfSubjectReviews(), slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); own.Run(ctx) }()
		time.Sleep(time.Millisecond) // every change is between two rounds
		for i, s := range []struct {
			change func()
			moment
			lost bool
		}{
			{nil, moment{0, 1}, false},
			{nil, moment{credentialsEvery - credentialsRetry, 1}, false},
			{nil, moment{credentialsRetry, 2}, false},
			{func() { own.suspect() }, moment{credentialsRetry, 3}, false},
			{func() { name = "mallory" }, moment{credentialsEvery - credentialsRetry, 3}, false},
			{nil, moment{credentialsRetry, 4}, true},
			{nil, moment{5 * credentialsRetry, 9}, true},
			{func() { failure = errors.New("out of reach") }, moment{2 * credentialsRetry, 11}, true},
			{func() { failure, name = nil, selfUser.Name }, moment{credentialsRetry, 12}, false},
			{nil, moment{credentialsEvery - credentialsRetry, 12}, false},
			{nil, moment{credentialsRetry, 13}, false},
		} {
			if s.change != nil {
				mu.Lock()
				s.change()
				mu.Unlock()
			}
			time.Sleep(s.after)
			synctest.Wait()
			mu.Lock()
			if asked != s.asked || own.lost() != s.lost {
				t.Errorf("stage %d: asked %d times, lost %t; want %d, %t", i+1, asked, own.lost(), s.asked, s.lost)
			}
			mu.Unlock()
		}
		cancel()
		<-ended
	})
}

// The sidecar reads the local server's flags every flagsEvery, every flagsRetry while it could not
// learn them, and soon after a suspicion.
func TestFlagsAreLookedAtInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, code := 0, http.StatusOK
		var mu sync.Mutex // of these
		server := fakeTransport(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if r.URL.Path == "/livez" {
				return answers(http.StatusOK, "[+]ping ok\n"), nil
			}
			asked++
			return answers(code, ""), nil
		})
		o := NewOptions()
		flags := newLocalFlags(o, mustURL(t, "https://127.0.0.1:1"), server, server, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); flags.Run(ctx) }()
		time.Sleep(time.Millisecond) // every change is between two rounds
		for i, s := range []struct {
			change func()
			moment
			known bool
		}{
			{nil, moment{0, 1}, true},
			{nil, moment{flagsEvery - flagsRetry, 1}, true},
			{nil, moment{flagsRetry, 2}, true},
			{func() { flags.suspect() }, moment{0, 2}, false},
			{nil, moment{flagsRetry, 3}, true},
			{func() { code = http.StatusServiceUnavailable; flags.suspect() }, moment{flagsRetry, 4}, false},
			{nil, moment{3 * flagsRetry, 7}, false},
			{func() { code = http.StatusUnauthorized }, moment{flagsRetry, 8}, true},
			{nil, moment{flagsEvery - flagsRetry, 8}, true},
			{nil, moment{flagsRetry, 9}, true},
		} {
			if s.change != nil {
				mu.Lock()
				s.change()
				mu.Unlock()
			}
			time.Sleep(s.after)
			synctest.Wait()
			mu.Lock()
			if asked != s.asked || flags.known() != s.known {
				t.Errorf("stage %d: asked %d times, known %t; want %d, %t", i+1, asked, flags.known(), s.asked, s.known)
			}
			mu.Unlock()
		}
		cancel()
		<-ended
	})
}

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// deniedBy is the error of an admission webhook that denies with its usual code.
func deniedBy(name, why string) error {
	return webhookerrors.ToStatusErr(name, &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: why})
}

// What each answer to the question for the sidecar's own identity says about its credentials, and
// what the answer of the local server to a caller's request then becomes.
func TestAnswersAboutOwnCredentials(t *testing.T) {
	const toOthers = "/apis/aggregated.example/v1/things" // an aggregated API server answers it
	self := authenticationv1.UserInfo{Username: selfUser.Name}
	for name, c := range map[string]struct {
		who  authenticationv1.UserInfo
		err  error
		want acceptance
	}{
		"ourselves":     {self, nil, accepted},
		"anonymous":     {authenticationv1.UserInfo{Username: user.Anonymous}, nil, refused},
		"somebody else": {authenticationv1.UserInfo{Username: selfUser.Name + "x"}, nil, refused},
		"nobody":        {authenticationv1.UserInfo{}, nil, refused},
		"unauthorized":  {self, apierrors.NewUnauthorized(""), refused},
		"forbidden": {self, responsewriters.ForbiddenStatusError(authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: "x"}, Verb: "create", APIGroup: "authentication.k8s.io", Resource: "selfsubjectreviews", ResourceRequest: true,
		}, ""), refused},
		"denied by a webhook": {self, deniedBy("guard.example.com", "no"), acceptanceUnknown},
		"denied by a policy": {self, apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectreviews"}, "",
			errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no")), acceptanceUnknown},
		"no such API":       {self, notFound, accepted},
		"too many":          {self, apierrors.NewTooManyRequests("", 1), acceptanceUnknown},
		"unavailable":       {self, apierrors.NewServiceUnavailable(""), acceptanceUnknown},
		"an internal one":   {self, apierrors.NewInternalError(errors.New("x")), acceptanceUnknown},
		"no answer":         {self, io.ErrUnexpectedEOF, acceptanceUnknown},
		"no answer in time": {self, context.DeadlineExceeded, acceptanceUnknown},
	} {
		for before := range []acceptance{acceptanceUnknown, accepted, refused} {
			before := acceptance(before)
			oracle := &oracle{who: c.who, err: c.err}
			var logged strings.Builder
			own := newOwnCredentials(selfReviewsOf{oracle: oracle}, slog.New(slog.NewTextHandler(&logged, nil)))
			own.state.Store(int32(before))
			if got := own.askedSince(t.Context(), time.Now()); got != c.want {
				t.Errorf("%s: %d, want %d", name, got, c.want)
			}
			after := c.want // an answer that says nothing leaves what was known
			if c.want == acceptanceUnknown {
				after = before
			}
			if got := acceptance(own.state.Load()); got != after || own.lost() != (after == refused) {
				t.Errorf("%s, before it %d: now %d, lost %t; want %d", name, before, got, own.lost(), after)
			}
			lost, regained := strings.Contains(logged.String(), "answered with 503"), strings.Contains(logged.String(), "again")
			if lost != (c.want == refused && before != refused) || regained != (c.want == accepted && before == refused) {
				t.Errorf("%s, before it %d: logged %s", name, before, &logged)
			}
			for path, others := range map[string]bool{common: false, "/api/v1/namespaces/n/pods/p/proxy/login": true, toOthers: true} {
				for _, status := range []int{200, 401, 403, 500} {
					own := newOwnCredentials(selfReviewsOf{oracle: oracle}, slog.New(slog.DiscardHandler))
					own.state.Store(int32(before))
					body := &closing{Reader: strings.NewReader("")}
					sent := false
					through := asserted{fakeTransport(func(*http.Request) (*http.Response, error) {
						sent = true
						answer := answers(status, "")
						answer.Body = body
						return answer, nil
					}), own}
					var answer *http.Response
					var err error
					request := &closing{Reader: strings.NewReader("x")}
					withInfo(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						if path == toOthers {
							r = r.WithContext(withCallerOf(r.Context(), toAggregated(&user.DefaultInfo{Name: "alice"})))
						}
						answer, err = through.RoundTrip(r)
					})).
						ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, request))
					passes := before != refused && (status != 401 || c.want == accepted || c.want == acceptanceUnknown && others)
					if passes != (err == nil) || !passes && err != errOwnCredentials || passes && answer.StatusCode != status {
						t.Errorf("%s, before it %d, %s answers %d: error %v, want it passed on %t", name, before, path, status, err, passes)
					}
					if sent != (before != refused) || request.closed != (before == refused) || body.closed != (sent && !passes) {
						t.Errorf("%s, before it %d, %s answers %d: sent %t, the request's body closed %t, the answer's %t", name, before, path, status, sent, request.closed, body.closed)
					}
					if counted := testutil.ToFloat64(own.refused); (counted == 1) != !passes {
						t.Errorf("%s, before it %d, %s answers %d: %v requests counted", name, before, path, status, counted)
					}
				}
			}
		}
	}
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// Requests that get a 401 at the same time share one question, which began after their answers.
func TestRequestsShareAQuestionAboutOwnCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{who: authenticationv1.UserInfo{Username: selfUser.Name}}
		own := newOwnCredentials(selfReviewsOf{oracle: o}, slog.New(slog.DiscardHandler))
		ask := func(since time.Time) { // one after the other
			if got := own.askedSince(t.Context(), since); got != accepted {
				t.Errorf("%d", got)
			}
		}
		for i, c := range []struct {
			ago  time.Duration // when the answer came
			want int           // questions in total
		}{{0, 1}, {0, 2}, {time.Millisecond, 2}, {time.Nanosecond, 2}, {0, 3}} {
			if c.ago == 0 {
				time.Sleep(time.Second)
			}
			ask(time.Now().Add(-c.ago))
			if len(o.asked) != c.want {
				t.Errorf("request %d: %d questions, want %d", i+1, len(o.asked), c.want)
			}
		}
	})
}

// No transport error becomes another one on the way.
func TestErrorsOfTheLocalServerStay(t *testing.T) {
	for _, err := range []error{io.EOF, context.Canceled, fmt.Errorf("x: %w", errNamesChanged)} {
		own := newOwnCredentials(selfReviewsOf{oracle: &oracle{}}, slog.New(slog.DiscardHandler))
		through := asserted{fakeTransport(func(*http.Request) (*http.Response, error) { return nil, err }), own}
		if _, got := through.RoundTrip(httptest.NewRequest(http.MethodGet, common, nil)); got != err {
			t.Errorf("%v became %v", err, got)
		}
		if asked := testutil.ToFloat64(own.refused); asked != 0 || !own.asked.IsZero() {
			t.Errorf("%v: counted %v, asked at %s", err, asked, own.asked)
		}
	}
}

package hostile

import (
	"context"
	"fmt"

	"golang.org/x/net/http2"
)

// streams is the number of requests that some clients send at a time on one connection. A
// kube-apiserver accepts 100.
const streams = 80

// asking opens a connection, sends requests on it, and stays for a while.
func asking(ctx context.Context, t *Target, token string, ask func(s *session, n int) error, settings ...http2.Setting) error {
	s, err := t.open(ctx, token, false, settings...)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for n := range streams {
		if ask(s, n) != nil {
			return nil // the server has ended the connection
		}
	}
	rest(ctx, restOfAnswers)
	return nil
}

// discovering asks anonymously for discovery, which the server has to authorize and to merge.
func discovering(ctx context.Context, t *Target, _ int) error {
	return asking(ctx, t, "", func(s *session, n int) error {
		_, err := s.ask("GET", []string{"/apis", "/api", "/openapi/v3"}[n%3], true)
		return err
	})
}

// makingUpTokens sends each request with another invented token.
func makingUpTokens(ctx context.Context, t *Target, i int) error {
	return asking(ctx, t, "", func(s *session, n int) error {
		_, err := s.ask("GET", t.resource(n), true, "authorization", fmt.Sprintf("Bearer made-up-%d-%d", i, n))
		return err
	})
}

// oddMethods uses methods that no HTTP client sends.
func oddMethods(ctx context.Context, t *Target, i int) error {
	return asking(ctx, t, t.token(i), func(s *session, n int) error {
		_, err := s.ask([]string{"(", "GET,", "a\"b"}[n%3], t.resource(n), true)
		return err
	})
}

// oddTimeouts asks for discovery with a timeout that cannot be parsed. A kube-apiserver refuses
// this before it authenticates the caller.
func oddTimeouts(ctx context.Context, t *Target, i int) error {
	token := ""
	if i%2 == 1 {
		token = t.token(i)
	}
	return asking(ctx, t, token, func(s *session, _ int) error {
		_, err := s.ask("GET", "/apis?timeout=x", true)
		return err
	})
}

// watchingDeaf opens watches as a user who may, and leaves no flow-control window for the events.
func watchingDeaf(ctx context.Context, t *Target, i int) error {
	return asking(ctx, t, t.reader(i), func(s *session, n int) error {
		_, err := s.ask("GET", t.resource(n)+"?watch=true&timeoutSeconds=3600", true)
		return err
	}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
}

// leaving asks for lists as a user who may read them, and resets the streams of half of them.
func leaving(ctx context.Context, t *Target, i int) error {
	return asking(ctx, t, t.reader(i), func(s *session, n int) error {
		stream, err := s.ask("GET", t.resource(n), true)
		if err != nil || n%2 == 0 {
			return err
		}
		return s.WriteRSTStream(stream, http2.ErrCodeCancel)
	})
}

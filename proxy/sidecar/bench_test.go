package sidecar

import (
	"context"
	"flag"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// program allows a comparison of two versions of the sidecar in front of the same stand-in.
var program = flag.String("sidecar", "", "the skewproof whose proxy BenchmarkFrontDoor measures; empty: this one, in the process of the test")

// BenchmarkFrontDoor is one request of a client that has sent such a request before. The local
// server or the peer serves it. The user has a certificate or a token.
func BenchmarkFrontDoor(b *testing.B) {
	w := newWorld(b)
	servers := map[string]*apiserver{
		"a": newAPIServer(b, "a", w.serving, w.frontCA, everywhere, onlyA),
		"b": newAPIServer(b, "b", w.serving, w.frontCA, everywhere, onlyB),
	}
	options := map[string]*Options{}
	for name, server := range servers {
		server.tokens["bots"] = authenticationv1.UserInfo{Username: "bot"}
		o := w.options(name, server)
		o.AccessLog, o.Logger = "", nil
		o.Listener = listen(b)
		options[name] = o
	}
	options["a"].Peers = []string{"apiserver-b=" + options["b"].Listener.Addr().String()}
	options["b"].Peers = []string{"apiserver-a=" + options["a"].Listener.Addr().String()}
	run := w.run
	if *program != "" {
		run = w.exec
	}
	atA, atB := run(options["a"]), run(options["b"])
	atA.awaitReady()
	atB.awaitReady()
	await(b, "a knows what b serves", func() bool { return atA.knows("apiserver-b") })

	for _, caller := range []struct {
		name    string
		client  *http.Client
		headers []string
	}{
		{"certificate", w.user("alice"), nil},
		{"token", w.client(nil, true), []string{"Authorization", "Bearer bots"}},
	} {
		for _, served := range []struct{ name, path string }{{"local", common}, {"peer", farAway}} {
			b.Run(served.name+"/"+caller.name, func(b *testing.B) {
				for b.Loop() {
					if got := atA.get(caller.client, served.path, caller.headers...); got.code != http.StatusOK {
						b.Fatalf("%d %s", got.code, got.body)
					}
					for _, server := range servers {
						server.set(func() { server.seen = server.seen[:0] })
					}
				}
			})
		}
	}
}

// exec starts a sidecar as a separate process, on the address of o.Listener.
func (w *world) exec(o *Options) *running {
	w.t.Helper()
	front, admin := o.Listener, listen(w.t)
	o.Listener = nil
	r := &running{world: w, options: o, front: front.Addr().String(), admin: admin.Addr().String()}
	o.AdminBindAddress = r.admin
	port := r.front[strings.LastIndex(r.front, ":")+1:]
	o.SecurePort, _ = strconv.Atoi(port)
	_ = front.Close()
	_ = admin.Close()

	usual := map[string]string{}
	for _, set := range NewOptions().Flags().FlagSets {
		set.VisitAll(func(f *pflag.Flag) { usual[f.Name] = f.Value.String() })
	}
	args := []string{"proxy", "--bind-address=127.0.0.1"}
	for _, set := range o.Flags().FlagSets {
		set.VisitAll(func(f *pflag.Flag) {
			if f.Value.String() == usual[f.Name] {
				return
			}
			values := []string{f.Value.String()}
			if list, ok := f.Value.(pflag.SliceValue); ok {
				values = list.GetSlice()
			}
			for _, value := range values {
				args = append(args, "--"+f.Name+"="+value)
			}
		})
	}
	slices.Sort(args[1:])
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, *program, args...)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	await(w.t, "the sidecar listens", func() bool {
		conn, err := net.Dial("tcp", r.admin)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return r
}

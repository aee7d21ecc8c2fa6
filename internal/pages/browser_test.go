package pages

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var errNoBrowser = errors.New("no page was opened: the program chromium is not installed (on Debian: apt-get install chromium); then run the test again " +
	"with -count=1, because go test keeps the result")

// stopBrowser ends the browser, if it was started.
var stopBrowser = func() error { return nil }

// browser starts the browser that all tests share. Its profile is in a temporary directory.
var browser = sync.OnceValues(func() (context.Context, error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, errNoBrowser
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND")) // whatever a page asks for, it does not get out
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	stopBrowser = func() error { return chromedp.Cancel(ctx) }
	return ctx, chromedp.Do(ctx)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if err := stopBrowser(); err != nil {
		fmt.Fprintln(os.Stderr, "close the browser:", err)
	}
	os.Exit(code)
}

// view is how a reader looks at a page.
type view struct {
	width         int64 // of the window, in pixels
	dark, scripts bool
}

func (v view) String() string {
	scheme, scripts := "light", "without scripts"
	if v.dark {
		scheme = "dark"
	}
	if v.scripts {
		scripts = "with scripts"
	}
	return fmt.Sprintf("%d px, %s, %s", v.width, scheme, scripts)
}

// tab is a tab of the browser, with all that its page wrote to the console and asked for.
type tab struct {
	t   testing.TB
	ctx context.Context
	// own is the context of the tests' scripts: they see the document, but neither the page's
	// scripts nor its policy.
	own runtime.ExecutionContextID

	mu                sync.Mutex
	address           string
	console, requests []string
}

// newTab opens a tab, which is closed when the test ends.
func newTab(t testing.TB) *tab {
	t.Helper()
	ctx, err := browser()
	if errors.Is(err, errNoBrowser) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx}
	p.must(chromedp.Listen(ctx, p.note))
	_, err = chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.must(err) // or keys reach only the tab that was opened last
	return p
}

// show loads a page anew, in a view.
func (p *tab) show(file string, v view) {
	p.t.Helper()
	p.mu.Lock()
	p.address = (&url.URL{Scheme: "file", Path: file}).String()
	p.console, p.requests = nil, nil
	p.mu.Unlock()
	scheme := "light"
	if v.dark {
		scheme = "dark"
	}
	p.do(chromedp.EmulateViewport(v.width, 1000))
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	p.must(err)
	p.allowScripts(v.scripts)
	p.do(chromedp.Navigate(p.address))
	p.allowScripts(true) // for the scripts of the tests; those of the page have had their turn

	tree, err := chromedp.Call(p.ctx, page.GetFrameTree, cdp.Empty{})
	p.must(err)
	world, err := chromedp.Call(p.ctx, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: tree.FrameTree.Frame.ID})
	p.must(err)
	p.own = world.ExecutionContextID
}

func (p *tab) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("in the browser: %v", err)
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.must(chromedp.Do(p.ctx, actions...))
}

func (p *tab) allowScripts(on bool) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
	p.must(err)
}

// note records what the page says and asks for.
func (p *tab) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		switch e.Type {
		case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			p.console = append(p.console, string(e.Type)+": "+strings.Join(words, " "))
		}
	case *runtime.EventExceptionThrown:
		said := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			said += " " + x.Description
		}
		p.console = append(p.console, "exception: "+said)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.console = append(p.console, string(e.Entry.Source)+": "+e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "data:") && strings.TrimSuffix(e.Request.URL, e.Request.URLFragment) != p.address {
			p.requests = append(p.requests, e.Request.URL)
		}
	case *network.EventWebSocketCreated:
		p.requests = append(p.requests, e.URL)
	}
}

// heard returns what the page wrote to the console and asked for until now.
func (p *tab) heard() (console, requests []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.console), slices.Clone(p.requests)
}

// evaluate runs an expression of the tests in the page. It waits for a promise.
func evaluate[T any](p *tab, expression string) T {
	p.t.Helper()
	inOwn := func(e *runtime.EvaluateParams) { e.ContextID = p.own }
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise, inOwn))
	p.must(err)
	return value
}

// saved writes a page to a file and returns its path.
func saved(t testing.TB, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

package results_test

import (
	"bytes"
	"cmp"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/results"
)

// browser is a tab of a headless Chromium that notes what a page asks for and complains of.
type browser struct {
	ctx      context.Context
	mutex    sync.Mutex
	requests []string
	messages []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("TERAPUSH_CHROMIUM"), "chromium"))
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("CI has to test this: no Chromium: run scripts/tools chromium: %v", err)
	case err != nil:
		t.Skipf("no Chromium: run scripts/tools chromium, or set TERAPUSH_CHROMIUM: %v", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to start for root with one
	}
	limited, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(stop)
	allocator, stop := chromedp.NewExecAllocator(limited, options...)
	t.Cleanup(stop)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(stop)
	b := &browser{ctx: ctx}
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	require.NoError(t, chromedp.Listen(ctx, b.note))
	return b
}

func (b *browser) note(event any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *network.EventWebSocketCreated:
		b.requests = append(b.requests, e.URL)
	case *runtime.EventConsoleAPICalled:
		b.messages = append(b.messages, string(e.Type))
	case *runtime.EventExceptionThrown:
		b.messages = append(b.messages, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.messages = append(b.messages, e.Entry.Text)
	}
}

// noted empties the notes.
func (b *browser) noted() (requests, messages []string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	requests, messages = b.requests, b.messages
	b.requests, b.messages = nil, nil
	return requests, messages
}

func (b *browser) open(t *testing.T, address string, width int64, scheme string) {
	t.Helper()
	require.NoError(t, chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 844)))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(t, err)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Navigate(address)))
}

func evaluate[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err)
	return v
}

// inspect looks at all that is shown: drawings without anything in them, texts smaller than 11 pixels, and texts whose
// colour is too near to what is behind them.
const inspect = `(() => {
  const seen = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0 }
  const charts = [...document.querySelectorAll('svg')].filter(seen)
  const empty = charts.filter(s => ![...s.querySelectorAll('path')].some(p => p.getBBox().width > 0)).map(s => s.getAttribute('aria-labelledby'))
  const rgb = s => s.match(/[\d.]+/g).map(Number)
  const luminance = c => { const l = c.slice(0, 3).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * l[0] + .7152 * l[1] + .0722 * l[2] }
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c } return [255, 255, 255] }
  const small = [], weak = []
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let n; n = walk.nextNode();) {
    const e = n.parentElement
    if (!n.data.trim() || !seen(e) || ['TITLE', 'DESC', 'STYLE'].includes(e.tagName.toUpperCase())) continue
    const style = getComputedStyle(e), svg = e.closest('svg')
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1
    if (parseFloat(style.fontSize) * scale < 11) small.push(n.data)
    const a = luminance(rgb(svg ? style.fill : style.color)), b = luminance(ground(e))
    if ((Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5) weak.push(n.data)
  }
  return {Charts: charts.length, Empty: empty, Small: small, Weak: weak, Width: document.documentElement.scrollWidth}
})()`

type inspected struct {
	Charts, Width      int64
	Empty, Small, Weak []string
}

// TestInBrowser opens the pages of sweeps, a run and a comparison as a reader does, from a file, on a screen and on a phone, light and dark. A page with
// everything wrong comes first: it shows that the inspection finds what it looks for.
func TestInBrowser(t *testing.T) {
	backendtest.Long(t)
	b := newBrowser(t)
	path := filepath.Join(t.TempDir(), "report.html")
	const bad = `<body style="width:900px"><p style="font-size:10px">small</p><p style="color:#ccc">weak</p><svg aria-labelledby="a" viewBox="0 0 9 9"></svg>
<img src="http://127.0.0.1:9/x.png"><script>console.log("hello")</script>`
	require.NoError(t, os.WriteFile(path, []byte(bad), 0o644))
	b.open(t, "file://"+path, 390, "light")
	got := evaluate[inspected](t, b, inspect)
	require.Equal(t, inspected{Charts: 1, Width: got.Width, Empty: []string{"a"}, Small: []string{"small"}, Weak: []string{"weak"}}, got)
	require.Greater(t, got.Width, int64(390))
	requests, messages := b.noted()
	require.Len(t, requests, 2)
	require.Contains(t, messages, "log")

	long := results.Tables([]results.Record{large()})[0]
	long.Title = "a-title-of-one-word-that-is-longer-than-any-phone-is-wide-0123456789"
	var change bytes.Buffer
	require.NoError(t, results.Compare(fixture(t, "workers.jsonl"), fixture(t, "workers-after.jsonl"), 0).Write(&change, results.HTML))
	address := (&url.URL{Scheme: "file", Path: path}).String()
	for page, charts := range map[string]int64{
		shown(t, results.HTML, append(drawn(t), long)...):   12,
		rendered(t, results.HTML, records(t, "run-4.json")): 2,
		change.String(): 1,
	} {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
		looksRight(t, b, address, charts)
	}
}

// looksRight opens a page with so many charts as a reader does.
func looksRight(t *testing.T, b *browser, address string, charts int64) {
	t.Helper()
	shots := map[string][]byte{}
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.noted()
			b.open(t, address, width, scheme)
			got := evaluate[inspected](t, b, inspect)
			require.Equal(t, charts, got.Charts)
			require.Empty(t, got.Empty, "charts without anything in them")
			require.Empty(t, got.Small, "texts below 11 pixels")
			require.Empty(t, got.Weak, "texts of little contrast")
			require.LessOrEqual(t, got.Width, width)
			shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			require.NoError(t, err)
			shots[scheme] = shot
			requests, messages := b.noted()
			require.Equal(t, []string{address}, requests, "the file, and nothing else")
			require.Empty(t, messages)
		}
		require.NotEqual(t, shots["light"], shots["dark"])
	}
}

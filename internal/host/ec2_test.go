package host

import (
	"context"
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// answers is a metadata service of version 2: no answer without a token.
func answers(t *testing.T, pages map[string]string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" {
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
			_, _ = w.Write([]byte("a token"))
			return
		}
		text, ok := pages[strings.TrimPrefix(r.URL.Path, "/latest/meta-data/")]
		switch {
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "a token":
			w.WriteHeader(http.StatusUnauthorized)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write([]byte(text))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func pages() map[string]string {
	return map[string]string{
		"instance-type": "c6in.8xlarge", "instance-id": "i-0abc",
		"placement/availability-zone-id": "use1-az1", "placement/group-name": "close",
	}
}

// allowed undoes what machines set that are no instances, so that no test there waits for one.
func allowed(t *testing.T) { t.Setenv("AWS_EC2_METADATA_DISABLED", "") }

func TestAsk(t *testing.T) {
	allowed(t)
	require.Equal(t, Instance{
		Here: true, ID: "i-0abc", Type: "c6in.8xlarge", AZID: "use1-az1", PlacementGroup: "close",
	}, askEC2(t.Context(), plant(t, nil), answers(t, pages())))

	few := pages()
	delete(few, "placement/group-name")
	i := askEC2(t.Context(), plant(t, nil), answers(t, few))
	require.Empty(t, i.PlacementGroup)
	require.Empty(t, i.Unknown)
	require.Equal(t, "c6in.8xlarge", i.Type)
}

func TestAProxyIsNotAsked(t *testing.T) {
	allowed(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	require.Equal(t, "use1-az1", askEC2(t.Context(), plant(t, nil), answers(t, pages())).AZID)
}

func TestNoRequestElsewhere(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no firmware":      nil,
		"another vendor":   {"sys/devices/virtual/dmi/id/sys_vendor": "QEMU\n", "sys/devices/virtual/dmi/id/board_asset_tag": "7783-7084"},
		"garbage":          {"sys/devices/virtual/dmi/id/product_uuid": "\x00\xff", "sys/hypervisor/uuid": "", "sys/devices/virtual/dmi/id/bios_version/x": ""},
		"another ec2 part": {"sys/devices/virtual/dmi/id/product_uuid": "aec2"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, Instance{}, askEC2(t.Context(), plant(t, files), "")) })
	}
}

func TestTheFirmwareTells(t *testing.T) {
	allowed(t)
	for name, files := range map[string]map[string]string{
		"Nitro":            {"sys/devices/virtual/dmi/id/sys_vendor": "Amazon EC2\n"},
		"a board's tag":    {"sys/devices/virtual/dmi/id/board_asset_tag": "i-0def\n"},
		"Xen, as root":     {"sys/devices/virtual/dmi/id/product_uuid": "EC2B1234-\n"},
		"Xen's version":    {"sys/devices/virtual/dmi/id/bios_version": "4.11.amazon\n"},
		"Xen's identifier": {"sys/hypervisor/uuid": "ec2e1916-9099-7caf-fd21-012345abcdef\n"},
	} {
		t.Run(name, func(t *testing.T) {
			called, cancel := context.WithCancel(t.Context())
			cancel() // this machine may be an instance, and the question would go out
			i := askEC2(called, plant(t, files), "")
			require.True(t, i.Here)
			require.Equal(t, "the request was cancelled", i.Unknown)
		})
	}
}

func TestWhatIsNotKnownIsExplained(t *testing.T) {
	allowed(t)
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"switched off": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "switched off for this instance (403)"},
		"broken":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, "cannot be asked: "},
		"no answer":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "cannot be asked: "},
		"a web page":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>\n</html>")) }, "cannot be asked: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(c.serve)
			defer s.Close()
			i := askEC2(t.Context(), plant(t, nil), s.URL)
			require.True(t, i.Here)
			require.Contains(t, i.Unknown, c.want)
			require.Empty(t, i.Type)
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	require.Contains(t, askEC2(t.Context(), plant(t, nil), gone.URL).Unknown, "cannot be asked: ")

	strange := answers(t, map[string]string{"instance-type": strings.Repeat("x", 1000)})
	require.Contains(t, askEC2(t.Context(), plant(t, nil), strange).Unknown, "is no metadata service")
	require.Equal(t, "the metadata service cannot be asked: it has no instance type", askEC2(t.Context(), plant(t, nil), answers(t, nil)).Unknown)
}

func TestSilenceIsExplained(t *testing.T) {
	allowed(t)
	enough := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-enough:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(enough)
	i := askEC2(t.Context(), plant(t, nil), s.URL)
	require.Contains(t, i.Unknown, "hop limit of 2")
}

func TestBandwidth(t *testing.T) {
	for name, want := range map[string]int64{"c5n.9xlarge": 50e9, "c7i.24xlarge": 37.5e9, "c8gn.48xlarge": 600e9} {
		bits, ok := Instance{Type: name}.Bandwidth()
		require.True(t, ok, name)
		require.Equal(t, want, bits, name)
	}
	for _, name := range []string{"", "type", "c5n", "c5n.4xlarge", "c5n.9xlarge,50", "C5N.9XLARGE"} { // c5n.4xlarge is "up to 25"
		_, ok := Instance{Type: name}.Bandwidth()
		require.False(t, ok, name)
	}
}

func TestTheTableIsWhole(t *testing.T) {
	all, err := csv.NewReader(strings.NewReader(bandwidths)).ReadAll()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, line := range all[1:] {
		bits, ok := Instance{Type: line[0]}.Bandwidth()
		require.True(t, ok, line)
		require.GreaterOrEqual(t, bits, int64(10e9), line)
		require.False(t, seen[line[0]], line)
		seen[line[0]] = true
	}
}

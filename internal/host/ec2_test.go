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

// Only the firmware of an instance makes terapush ask, and the request would go out where this machine is one.
func TestWhoIsAnInstance(t *testing.T) {
	allowed(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	const dmi = "sys/devices/virtual/dmi/id/"
	for name, c := range map[string]struct {
		files map[string]string
		here  bool
	}{
		"no firmware":      {nil, false},
		"another vendor":   {map[string]string{dmi + "sys_vendor": "QEMU\n", dmi + "board_asset_tag": "7783-7084"}, false},
		"garbage":          {map[string]string{dmi + "product_uuid": "\x00\xff", "sys/hypervisor/uuid": "", dmi + "bios_version/x": ""}, false},
		"another ec2 part": {map[string]string{dmi + "product_uuid": "aec2"}, false},
		"Nitro":            {map[string]string{dmi + "sys_vendor": "Amazon EC2\n"}, true},
		"a board's tag":    {map[string]string{dmi + "board_asset_tag": "i-0def\n"}, true},
		"Xen, as root":     {map[string]string{dmi + "product_uuid": "EC2B1234-\n"}, true},
		"Xen's version":    {map[string]string{dmi + "bios_version": "4.11.amazon\n"}, true},
		"Xen's identifier": {map[string]string{"sys/hypervisor/uuid": "ec2e1916-9099-7caf-fd21-012345abcdef\n"}, true},
	} {
		i := askEC2(cancelled, plant(t, c.files), "")
		require.Equal(t, c.here, i.Here, name)
		require.Equal(t, c.here, i.Unknown == "the request was cancelled", name)
	}
}

func TestWhatIsNotKnownIsExplained(t *testing.T) {
	allowed(t)
	served := func(f http.HandlerFunc) string {
		s := httptest.NewServer(f)
		t.Cleanup(s.Close)
		return s.URL
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>\n</html>")) }
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct{ endpoint, want string }{
		"switched off": {served(status(http.StatusForbidden)), "switched off for this instance (403)"},
		"broken":       {served(status(http.StatusInternalServerError)), "cannot be asked: "},
		"no answer":    {served(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "cannot be asked: "},
		"a web page":   {served(page), "cannot be asked: "},
		"gone":         {gone.URL, "cannot be asked: "},
		"strange":      {answers(t, map[string]string{"instance-type": strings.Repeat("x", 1000)}), "is no metadata service"},
		"silent":       {served(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), "hop limit of 2"},
		"no type":      {answers(t, nil), "the metadata service cannot be asked: it has no instance type"},
	} {
		i := askEC2(t.Context(), plant(t, nil), c.endpoint)
		require.True(t, i.Here, name)
		require.Contains(t, i.Unknown, c.want, name)
		require.NotContains(t, i.Type, "<", name)
	}
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
		require.True(t, ok && bits >= 10e9 && !seen[line[0]], line)
		seen[line[0]] = true
	}
}

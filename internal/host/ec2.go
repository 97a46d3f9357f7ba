package host

import (
	"context"
	_ "embed" // the table of bandwidths
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
)

// Instance is what the metadata service reports.
type Instance struct {
	// Here reports whether this machine is an instance of EC2. If not, nothing was asked and the rest is empty.
	Here bool
	ID   string // "i-0123456789abcdef0"
	Type string // "c6in.16xlarge"
	// AZ is the availability zone by the account's own name for it, AZID by the one that is the same for all accounts.
	AZ, AZID       string
	Region         string
	PlacementGroup string // "" outside one
	// Unknown is why Type and what follows it is empty; "" where it is not.
	Unknown string
}

// bandwidths are those of instance types that are made for the network, in Gbps: the figures of the pages on network
// performance in Amazon's documentation of EC2, as of August 2026. Types whose figure reads "up to" are left out: they
// keep that rate for minutes, until their credits are used up.
//
//go:embed bandwidth.csv
var bandwidths string

// Bandwidth returns what the instance may send at any length of time, in bits a second; it may receive as much again.
// known is false for types that are not in the table.
func (i Instance) Bandwidth() (bits int64, known bool) {
	for line := range strings.Lines(bandwidths) {
		name, gbps, _ := strings.Cut(strings.TrimSpace(line), ",")
		if name != i.Type {
			continue
		}
		n, err := strconv.ParseFloat(gbps, 64)
		return int64(n * 1e9), err == nil
	}
	return 0, false
}

// metadataTimeout is how long all questions together may take. The service is on the same machine and answers in
// milliseconds, or not at all.
const metadataTimeout = time.Second

// endpointVariable names another metadata service, to the SDKs as well.
const endpointVariable = "AWS_EC2_METADATA_SERVICE_ENDPOINT"

// AskEC2 asks the metadata service, by IMDSv2, if the firmware identifies this machine as an instance or the environment
// has AWS_EC2_METADATA_SERVICE_ENDPOINT. It takes a second at most. AWS_EC2_METADATA_DISABLED=true is respected.
func AskEC2(ctx context.Context) Instance { return askEC2(ctx, "/", os.Getenv(endpointVariable)) }

func askEC2(ctx context.Context, root tree, endpoint string) Instance {
	i := Instance{ID: firmwareID(root)}
	if i.Here = endpoint != "" || i.ID != "" || isInstance(root); !i.Here {
		return i
	}
	bound, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	s := newService(endpoint)
	defer s.wire.CloseIdleConnections()
	for _, question := range []struct {
		path string
		into *string
	}{
		{"instance-type", &i.Type},
		{"instance-id", &i.ID},
		{"placement/availability-zone", &i.AZ},
		{"placement/availability-zone-id", &i.AZID},
		{"placement/region", &i.Region},
		{"placement/group-name", &i.PlacementGroup},
	} {
		text, err := s.text(bound, question.path)
		if err != nil {
			i.Unknown = s.why(ctx, err)
			return i
		}
		if text != "" {
			*question.into = text
		}
	}
	if i.Type == "" {
		i.Unknown = "the metadata service knows no instance type"
	}
	return i
}

// isInstance reports whether the hypervisor's entries in the firmware tables are Amazon's: on Nitro the vendor, on Xen
// the version of the BIOS and the start of an identifier, which only root may read.
func isInstance(root tree) bool {
	for path, sign := range map[string]string{
		"sys/devices/virtual/dmi/id/sys_vendor":   "amazon ec2",
		"sys/devices/virtual/dmi/id/bios_vendor":  "amazon ec2",
		"sys/devices/virtual/dmi/id/product_uuid": "ec2",
		"sys/hypervisor/uuid":                     "ec2",
	} {
		if text, _ := root.text(path); strings.HasPrefix(strings.ToLower(text), sign) {
			return true
		}
	}
	version, _ := root.text("sys/devices/virtual/dmi/id/bios_version")
	return strings.HasSuffix(version, ".amazon")
}

// firmwareID returns the instance's id, which Nitro writes into the tag of the board; "" elsewhere.
func firmwareID(root tree) string {
	if tag, _ := root.text("sys/devices/virtual/dmi/id/board_asset_tag"); strings.HasPrefix(tag, "i-") {
		return tag
	}
	return ""
}

// service is a client without retries and without the older version of the protocol: neither would find what the first
// request did not.
type service struct {
	*imds.Client
	wire *lastAnswer
}

func newService(endpoint string) service {
	// This transport uses no proxy: a proxy would reach the service of its own machine.
	w := &lastAnswer{Client: &http.Client{Transport: new(http.Transport)}}
	return service{imds.New(imds.Options{
		Endpoint: endpoint, HTTPClient: w, Retryer: aws.NopRetryer{}, EnableFallback: aws.FalseTernary,
	}), w}
}

// lastAnswer keeps status and error of the last request: the client's errors about its token cannot be unwrapped.
type lastAnswer struct {
	*http.Client
	status int
	err    error
}

// Do sends a request.
func (w *lastAnswer) Do(r *http.Request) (*http.Response, error) {
	answer, err := w.Client.Do(r)
	w.status, w.err = 0, err
	if err == nil {
		w.status = answer.StatusCode
	}
	return answer, err
}

// longestAnswer bounds an answer: the server at the address may be another one than the metadata service.
const longestAnswer = 256

// text returns the value at a path, "" where the service answers 404.
func (s service) text(ctx context.Context, path string) (string, error) {
	answer, err := s.GetMetadata(ctx, &imds.GetMetadataInput{Path: path})
	if err != nil && s.wire.status == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer answer.Content.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Content, longestAnswer+1))
	if err != nil {
		return "", err
	}
	if len(text) > longestAnswer || strings.ContainsFunc(string(text), func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", fmt.Errorf("%s: what answers is no metadata service", path)
	}
	return string(text), nil
}

// why returns an error as the text of Instance.Unknown.
func (s service) why(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return "the request was cancelled"
	case s.wire.status == http.StatusForbidden:
		return "the metadata service is switched off for this instance (403)"
	case errors.Is(s.wire.err, context.DeadlineExceeded):
		return fmt.Sprintf("the metadata service did not answer within %s: in a container its answer needs a hop limit of 2", metadataTimeout)
	case s.wire.err != nil:
		err = s.wire.err
	}
	return "the metadata service cannot be asked: " + err.Error()
}

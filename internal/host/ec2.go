package host

import (
	"cmp"
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
	Here           bool   // this machine is an instance of EC2; else nothing was asked and the rest is empty
	ID             string // "i-0123456789abcdef0"
	Type           string // "c6in.16xlarge"
	AZID           string // the availability zone, by the name that is the same for all accounts
	PlacementGroup string // "" outside of one
	Unknown        string // why the fields above are empty; ""
}

// bandwidths are those of instance types that are made for the network, in Gbps, from the pages on network performance
// in Amazon's documentation of EC2, August 2026. Types with "up to" are left out: they keep that rate for minutes.
//
//go:embed bandwidth.csv
var bandwidths string

// Bandwidth returns what the instance can send without limit of time, in bits a second; it can receive as much again.
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

// metadataTimeout bounds all requests together. The service is on the same machine and answers in milliseconds or not
// at all.
const metadataTimeout = time.Second

// endpointVariable names another metadata service, as it does for the SDKs.
const endpointVariable = "AWS_EC2_METADATA_SERVICE_ENDPOINT"

// AskEC2 asks the metadata service, by IMDSv2, if the firmware identifies this machine as an instance or
// AWS_EC2_METADATA_SERVICE_ENDPOINT is set, and AWS_EC2_METADATA_DISABLED is not true. It takes a second at most.
func AskEC2(ctx context.Context) Instance { return askEC2(ctx, "/", os.Getenv(endpointVariable)) }

func askEC2(ctx context.Context, root tree, endpoint string) Instance {
	i := Instance{ID: firmwareID(root)}
	if i.Here = endpoint != "" || i.ID != "" || isInstance(root); !i.Here {
		return i
	}
	bound, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	if err := i.ask(bound, endpoint); err != nil {
		switch {
		case ctx.Err() != nil:
			i.Unknown = "the request was cancelled"
		case errors.Is(err, context.DeadlineExceeded):
			i.Unknown = fmt.Sprintf("the metadata service did not answer within %s: from a container it needs a hop limit of 2",
				metadataTimeout)
		default:
			i.Unknown = "the metadata service cannot be asked: " + withoutURL(err).Error()
		}
	}
	return i
}

func (i *Instance) ask(ctx context.Context, endpoint string) error {
	wire := &lastAnswer{Client: http.Client{Transport: new(http.Transport)}} // a proxy would ask the service of its machine
	defer wire.CloseIdleConnections()
	service := imds.New(imds.Options{
		Endpoint: endpoint, HTTPClient: wire, Retryer: aws.NopRetryer{}, EnableFallback: aws.FalseTernary,
	})
	for _, value := range []struct {
		path string
		into *string
	}{
		{"instance-type", &i.Type},
		{"instance-id", &i.ID},
		{"placement/availability-zone-id", &i.AZID},
		{"placement/group-name", &i.PlacementGroup},
	} {
		answer, err := service.GetMetadata(ctx, &imds.GetMetadataInput{Path: value.path})
		switch {
		case err != nil && wire.status == http.StatusNotFound:
			continue
		case err != nil && wire.status == http.StatusForbidden:
			return errors.New("it is switched off for this instance (403)")
		case err != nil:
			return cmp.Or(wire.err, err)
		}
		text, err := io.ReadAll(io.LimitReader(answer.Content, maxAnswer+1))
		unprintable := func(r rune) bool { return r < ' ' || r > '~' }
		switch {
		case err != nil:
			return err
		case len(text) > maxAnswer || strings.ContainsFunc(string(text), unprintable):
			return errors.New("the server at its address is no metadata service")
		case len(text) > 0:
			*value.into = string(text)
		}
	}
	if i.Type == "" {
		return errors.New("it has no instance type")
	}
	return nil
}

// maxAnswer bounds an answer: the server at the address may be another one than the metadata service.
const maxAnswer = 256

// lastAnswer keeps status and error of the last request: imds does not unwrap its errors about the token.
type lastAnswer struct {
	http.Client
	status int // 0 without an answer
	err    error
}

// Do implements imds.HTTPClient.
func (l *lastAnswer) Do(r *http.Request) (answer *http.Response, err error) {
	l.status = 0
	if answer, err = l.Client.Do(r); err == nil {
		l.status = answer.StatusCode
	}
	l.err = err
	return answer, err
}

// isInstance reports whether the hypervisor's entries in the firmware tables are Amazon's: on Nitro the vendor, on Xen
// the version of the BIOS and the prefix of an identifier, which only root can read.
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

// firmwareID returns the instance's id, which Nitro writes into the board's tag; "" elsewhere.
func firmwareID(root tree) string {
	if tag, _ := root.text("sys/devices/virtual/dmi/id/board_asset_tag"); strings.HasPrefix(tag, "i-") {
		return tag
	}
	return ""
}

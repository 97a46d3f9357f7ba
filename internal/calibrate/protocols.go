package calibrate

import (
	"fmt"
	"net"
	"net/url"
	"slices"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Protocol is one way into a sink.
type Protocol struct {
	Name   string // of --only, and of the sink's port
	Method string

	also     string // a second port; "" is none
	textOnly bool   // there is no type for raw bytes, so that payload is text by default
	compares bool   // the back-end compares the rows of an answer with those sent, whatever --verify is
	objects  bool   // loads become objects, and there is no table
	target   func(at addresses, encrypted bool) string
}

// addresses are host:port by the names of the sink's ports.
type addresses map[string]string

// Ports returns the names of a sink's ports, as flags of `terapush sink`.
func Ports() (names []string) {
	for _, p := range Protocols() {
		names = append(names, p.ports()...)
	}
	return names
}

// nowhere returns addresses to plan pushes with.
func nowhere() addresses {
	at := addresses{}
	for _, name := range Ports() {
		at[name] = "localhost:1"
	}
	return at
}

const dorisSQL = "doris-sql"

// Protocols returns those that are measured, in order.
func Protocols() []Protocol {
	return []Protocol{
		{Name: "mysql", Method: "load-data", target: func(at addresses, _ bool) string {
			return "mysql://root@" + at["mysql"] + "/calibrate"
		}},
		{Name: "postgres", Method: "copy", target: func(at addresses, _ bool) string {
			return "postgres://root@" + at["postgres"] + "/calibrate"
		}},
		{Name: "doris", Method: "stream-load", also: dorisSQL, textOnly: true, compares: true,
			target: func(at addresses, _ bool) string {
				_, port, _ := net.SplitHostPort(at["doris"]) // from JoinHostPort
				return "doris://root@" + at[dorisSQL] + "/calibrate?http_port=" + port
			}},
		{Name: "databend", Method: "streaming-load", target: func(at addresses, _ bool) string {
			return "databend://root@" + at["databend"] + "/calibrate"
		}},
		{Name: "s3", Method: "put", objects: true, target: func(at addresses, encrypted bool) string {
			scheme := "http"
			if encrypted {
				scheme = "https"
			}
			return "s3://terapush-calibrate/run?path_style=true&region=us-east-1&endpoint=" + url.QueryEscape(scheme+"://"+at["s3"])
		}},
	}
}

// Chosen returns the protocols with these names, in the order of all. No names choose all.
func Chosen(names []string) (chosen []Protocol, err error) {
	var valid []string
	for _, p := range Protocols() {
		valid = append(valid, p.Name)
		if len(names) == 0 || slices.Contains(names, p.Name) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		if !slices.Contains(valid, name) {
			return nil, fmt.Errorf("--only: %w", config.Unknown("protocol", name, valid))
		}
	}
	return chosen, nil
}

func (p Protocol) ports() []string {
	if p.also == "" {
		return []string{p.Name}
	}
	return []string{p.Name, p.also}
}

// flags returns those of the protocol's pushes, of which given has some already.
func (p Protocol) flags(at addresses, encrypted bool, given map[string][]string) map[string][]string {
	flags := map[string][]string{"target": {p.target(at, encrypted)}}
	if !p.objects {
		flags["create"] = []string{string(loader.CreateNever)}
		flags["delivery"] = []string{string(loader.AtLeastOnce)}
	}
	if p.textOnly && given["payload-kind"] == nil && hasRawBytes(given) {
		flags["payload-kind"] = []string{string(dataset.Text)}
	}
	return flags
}

// hasRawBytes reports whether the dataset has a column of raw bytes by default.
func hasRawBytes(given map[string][]string) bool {
	name := "documents"
	if given["dataset"] != nil {
		name = given["dataset"][0]
	}
	d, err := dataset.New(name, dataset.Options{})
	return err == nil && slices.ContainsFunc(d.Schema().Columns, func(c rows.Column) bool { return c.Type == rows.Bytes })
}

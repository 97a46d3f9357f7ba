package calibrate

import (
	"fmt"
	"net"
	"net/url"
	"slices"
)

// Protocol is one way into a sink.
type Protocol struct {
	Name   string // of --only, and of the sink's port
	Method string
	// also is the name of a second port that the protocol needs; "" is none.
	also string
	http bool // the sink says who it is in a header
	// textOnly protocols have no type for raw bytes: a payload that can be text as well is sent as text.
	textOnly bool
	// compares means that the back-end compares the rows of an answer with those it sent, whatever --verify says.
	compares bool
	objects  bool // loads become objects, and there is no table
	target   func(at addresses, encrypted bool) string
}

// addresses are host:port by the names of the sink's ports.
type addresses map[string]string

// Ports returns the names of the ports of a sink that loads go into, as `terapush sink` calls them.
func Ports() (names []string) {
	for _, p := range Protocols() {
		names = append(names, p.ports()...)
	}
	return names
}

// nowhere are addresses to plan pushes with.
func nowhere() addresses {
	at := addresses{}
	for _, name := range Ports() {
		at[name] = "localhost:1"
	}
	return at
}

const dorisSQL = "doris-sql"

// Protocols are those that are measured, in order.
func Protocols() []Protocol {
	return []Protocol{
		{Name: "mysql", Method: "load-data", target: func(at addresses, _ bool) string {
			return "mysql://root@" + at["mysql"] + "/calibrate"
		}},
		{Name: "postgres", Method: "copy", target: func(at addresses, _ bool) string {
			return "postgres://root@" + at["postgres"] + "/calibrate"
		}},
		{Name: "doris", Method: "stream-load", also: dorisSQL, http: true, textOnly: true, compares: true,
			target: func(at addresses, _ bool) string {
				_, port, _ := net.SplitHostPort(at["doris"]) // which was put together by JoinHostPort
				return "doris://root@" + at[dorisSQL] + "/calibrate?http_port=" + port
			}},
		{Name: "databend", Method: "streaming-load", http: true, target: func(at addresses, _ bool) string {
			return "databend://root@" + at["databend"] + "/calibrate"
		}},
		{Name: "s3", Method: "put", http: true, objects: true, target: func(at addresses, encrypted bool) string {
			scheme := "http"
			if encrypted {
				scheme = "https"
			}
			return "s3://terapush-calibrate/run?path_style=true&region=us-east-1&endpoint=" + url.QueryEscape(scheme+"://"+at["s3"])
		}},
	}
}

// Chosen are the protocols of some names, in the order of all; none given are all.
func Chosen(names []string) ([]Protocol, error) {
	all := Protocols()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(p Protocol) bool { return p.Name == name }) {
			var valid []string
			for _, p := range all {
				valid = append(valid, p.Name)
			}
			return nil, fmt.Errorf("--only %q: there are %v", name, valid)
		}
	}
	return slices.DeleteFunc(all, func(p Protocol) bool { return !slices.Contains(names, p.Name) }), nil
}

// ports are the names of the ports that the protocol needs.
func (p Protocol) ports() []string {
	return slices.DeleteFunc([]string{p.Name, p.also}, func(name string) bool { return name == "" })
}

package calibrate

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
)

// Protocol is one way into a sink.
type Protocol struct {
	Name   string // of --only
	Method string
	ports  []string // of the sink
	// target is the pushes' target. {NAME} stands for the address of a port, {NAME:port} for the port alone, {scheme} for
	// http or https.
	target string
}

// Protocols returns those that are measured, in order.
func Protocols() []Protocol {
	return []Protocol{
		{"mysql", "load-data", []string{"mysql"}, "mysql://root@{mysql}/calibrate"},
		{"postgres", "copy", []string{"postgres"}, "postgres://root@{postgres}/calibrate"},
		{doris, "stream-load", []string{"doris", "doris-sql"}, "doris://root@{doris-sql}/calibrate?http_port={doris:port}"},
		{"databend", "streaming-load", []string{"databend"}, "databend://root@{databend}/calibrate"},
		{"s3", "put", []string{"s3"}, "s3://terapush-calibrate/run?path_style=true&region=us-east-1&endpoint={scheme}://{s3}"},
	}
}

// doris is the protocol that has no type for raw bytes, and whose back-end compares the rows of an answer with those that
// were sent, whatever --verify is.
const doris = "doris"

// addresses are host:port by the names of the sink's ports.
type addresses map[string]string

// nowhere returns addresses to plan pushes with.
func nowhere() addresses {
	at := addresses{}
	for _, name := range Ports() {
		at[name] = "localhost:1"
	}
	return at
}

// Ports returns the names of a sink's ports, as flags of `terapush sink`.
func Ports() (names []string) {
	for _, p := range Protocols() {
		names = append(names, p.ports...)
	}
	return names
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

// targetAt returns the target of the pushes into a sink.
func (p Protocol) targetAt(at addresses, encrypted bool) string {
	scheme := "http"
	if encrypted {
		scheme = "https"
	}
	filled := strings.ReplaceAll(p.target, "{scheme}", scheme)
	for _, name := range p.ports {
		_, port, _ := net.SplitHostPort(at[name]) // from JoinHostPort
		filled = strings.NewReplacer("{"+name+"}", at[name], "{"+name+":port}", port).Replace(filled)
	}
	return filled
}

package config

import (
	"cmp"
	"net"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Place is where the rows of a target go. Two targets of one place may differ in user, password and parameters.
type Place struct {
	Backend string
	// Hosts are in the order of the alphabet, with their ports.
	Hosts string
	// Database is bucket and prefix of a store, which may have several endpoints.
	Database string
}

// PlaceOf returns the place of a target's URL.
func PlaceOf(text string, drivers *loader.Registry) (Place, error) {
	t, err := loader.ParseTarget(text)
	if err != nil {
		return Place{}, err
	}
	driver, known := drivers.Lookup(t.Scheme)
	if !known {
		return Place{}, Unknown("target scheme", t.Scheme, drivers.Schemes())
	}
	p := Place{Backend: driver.Name()}
	if t.Scheme == "s3" {
		p.Database = strings.Join(t.Hosts, ",") + "/" + strings.Trim(t.Database, "/")
		return p, nil
	}
	p.Database = cmp.Or(t.Database, t.Params.Get("dbname"))
	if len(t.Hosts) == 0 {
		socket := cmp.Or(t.Params.Get("host"), t.Params.Get("socket"))
		t.Hosts = []string{net.JoinHostPort(cmp.Or(socket, "localhost"), cmp.Or(t.Params.Get("port"), usualPort(t.Scheme)))}
	}
	var hosts []string
	for i := range t.Hosts {
		host, port, _ := net.SplitHostPort(strings.ToLower(t.Address(i, usualPort(t.Scheme))))
		if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
			host = "localhost"
		}
		hosts = append(hosts, net.JoinHostPort(host, port))
	}
	slices.Sort(hosts)
	p.Hosts = strings.Join(slices.Compact(hosts), ",")
	return p, nil
}

// usualPort returns the port of a scheme's servers. The back-ends have it too, and only for themselves.
func usualPort(scheme string) string {
	switch scheme {
	case "mysql", "mariadb", "tidb", "singlestore":
		return "3306"
	case "yugabyte":
		return "5433"
	case "redshift":
		return "5439"
	case "oracle":
		return "1521"
	case "databend":
		return "8000"
	case "doris":
		return "9030"
	}
	return "5432"
}

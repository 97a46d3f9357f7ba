package doris

import (
	"cmp"
	"net"
	"strconv"
)

// The settings that clients have reason to ask for, with their defaults in release 3.1.
func frontendDefaults() map[string]string {
	return map[string]string{
		"label_keep_max_second": "259200", "streaming_label_keep_max_second": "43200", "label_num_threshold": "2000",
		"max_running_txn_num_per_db": "10000", "max_stream_load_timeout_second": "259200", "stream_load_default_timeout_second": "259200",
		"storage_high_watermark_usage_percent": "85", "storage_flood_stage_usage_percent": "95",
	}
}

func backendDefaults() map[string]string {
	return map[string]string{"streaming_load_max_mb": "10240", "streaming_load_json_max_mb": "100", "max_tablet_version_num": "2000"}
}

// frontendConfig is SHOW FRONTEND CONFIG.
func (s *session) frontendConfig() *result {
	r := &result{names: []string{"Key", "Value", "Type", "IsMutable", "MasterOnly", "Comment"}}
	for _, name := range sorted(frontendDefaults()) {
		v := cmp.Or(s.mysql.cluster.options.Config[name], frontendDefaults()[name])
		r.rows = append(r.rows, []value{name, v, "int", "true", "true", ""})
	}
	return r
}

// backendConfig is SHOW BACKEND CONFIG: each setting of each backend.
func (s *session) backendConfig() *result {
	r := &result{names: []string{"BackendId", "Host", "Key", "Value", "Type", "IsMutable"}}
	for i, b := range s.mysql.cluster.backends {
		host, _, _ := net.SplitHostPort(b.address())
		for _, name := range sorted(backendDefaults()) {
			v := cmp.Or(s.mysql.cluster.options.Config[name], backendDefaults()[name])
			r.rows = append(r.rows, []value{strconv.Itoa(10001 + i), host, name, v, "int64_t", "true"})
		}
	}
	return r
}

// grants is SHOW GRANTS of the only user, who is an administrator.
func (s *session) grants() *result {
	r := &result{
		names: []string{"UserIdentity", "Comment", "Password", "Roles", "GlobalPrivs", "CatalogPrivs", "DatabasePrivs", "TablePrivs",
			"ColPrivs", "ResourcePrivs", "WorkloadGroupPrivs"},
		rows: [][]value{{"'" + s.mysql.cluster.options.User + "'@'%'", "", "Yes", "operator", "Node_priv,Admin_priv", nil,
			"internal.information_schema: Select_priv; internal.mysql: Select_priv", nil, nil, nil, "normal: Usage_priv"}},
	}
	return r.saying(s.mysql.cluster.options.Grants)
}

// saying replaces the values of columns in every row.
func (r *result) saying(other map[string]string) *result {
	for i, name := range r.names {
		if v, is := other[name]; is {
			for _, row := range r.rows {
				row[i] = v
			}
		}
	}
	return r
}

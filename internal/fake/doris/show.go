package doris

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// show executes SHOW …; the columns are Doris', those without a meaning here are empty.
func (s *session) show(p *parser) (*result, error) {
	switch {
	case p.Take("VARIABLES"), p.Take("SESSION", "VARIABLES"), p.Take("GLOBAL", "VARIABLES"):
		return s.filtered(p, s.showVariables(), "Variable_name")
	case p.Take("FRONTEND", "CONFIG"):
		return s.filtered(p, s.frontendConfig(), "Key")
	case p.Take("BACKEND", "CONFIG"):
		return s.filtered(p, s.backendConfig(), "Key")
	case p.Take("GRANTS"):
		return s.filtered(p, s.grants(), "")
	case p.Take("BACKENDS"):
		return s.filtered(p, s.backends(), "")
	case p.Take("FRONTENDS"):
		return s.filtered(p, s.frontends(), "")
	case p.Take("DATABASES"), p.Take("SCHEMAS"):
		r := &result{names: []string{"Database"}}
		for _, name := range append(sorted(s.store.databases), "information_schema") {
			r.rows = append(r.rows, []value{name})
		}
		return s.filtered(p, r, "Database")
	case p.Take("TABLES"):
		return s.showTables(p)
	case p.Take("CREATE", "TABLE"):
		db, name := p.qualified()
		if err := p.End(); err != nil {
			return nil, err
		}
		t, err := s.table(db, name)
		if err != nil {
			return nil, err
		}
		return &result{names: []string{"Table", "Create Table"}, rows: [][]value{{t.name, t.ddl()}}}, nil
	case p.Take("LAST", "INSERT"):
		return s.showLast(p)
	case p.Take("TRANSACTION"):
		return s.showTransactions(p)
	case p.Take("LOAD"):
		return s.showLoads(p)
	case p.Take("COLUMNS"), p.Take("FULL", "COLUMNS"), p.Take("FIELDS"):
		if !p.Take("FROM") {
			p.Expect("IN")
		}
		db, name := p.qualified()
		if p.Take("FROM") {
			db = p.Identifier()
		}
		if err := p.End(); err != nil {
			return nil, err
		}
		return s.describe(db, name)
	case p.Take("PARTITIONS", "FROM"):
		return s.showPartitions(p)
	case p.Take("WARNINGS"), p.Take("ERRORS"):
		return s.filtered(p, &result{names: []string{"Level", "Code", "Message"}}, "")
	}
	p.Fail("a SHOW that is not known")
	return nil, p.Err
}

// filtered applies what may follow a SHOW: LIKE, WHERE, ORDER BY, LIMIT.
func (s *session) filtered(p *parser, r *result, likeColumn string) (*result, error) {
	q := &query{items: []item{{}}, limit: -1}
	if likeColumn != "" && p.Take("LIKE") {
		q.where = like{columnRef{likeColumn}, literal{p.Text()}}
	} else if p.Take("WHERE") {
		q.where = p.expression()
	}
	if p.Take("ORDER", "BY") {
		q.orderBy = append(q.orderBy, p.order())
	}
	p.limits(q)
	if err := p.End(); err != nil {
		return nil, err
	}
	q.from = &source{read: func() ([]string, [][]value, error) { return r.names, r.rows, nil }}
	return s.run(q)
}

// fromDatabase reads the optional FROM db of a SHOW.
func (s *session) fromDatabase(p *parser) (*database, error) {
	name := s.database
	if p.Take("FROM") || p.Take("IN") {
		name = p.Identifier()
	}
	if p.Err != nil {
		return nil, p.Err
	}
	if name == "" {
		return nil, &sqlError{1046, "3D000", "errCode = 2, detailMessage = No database selected"}
	}
	if s.store.databases[name] == nil {
		return nil, unknownDatabase(name)
	}
	return s.store.databases[name], nil
}

func (s *session) showVariables() *result {
	r := &result{names: []string{"Variable_name", "Value", "Default_Value", "Changed"}}
	all := s.variables()
	for _, name := range sorted(all) {
		_, changed := s.set[name]
		v := text(all[name])
		if slices.Contains([]string{"autocommit", "enable_insert_strict", "enable_nereids_planner", "enable_profile", "enable_text_validate_utf8", "enable_strict_cast"}, name) {
			v = strconv.FormatBool(v == "1")
		}
		r.rows = append(r.rows, []value{name, v, v, strconv.Itoa(int(truth(changed).(int64)))})
	}
	return r
}

func (s *session) showTables(p *parser) (*result, error) {
	d, err := s.fromDatabase(p)
	if err != nil {
		return nil, err
	}
	name := "Tables_in_" + d.name
	r := &result{names: []string{name}}
	for _, t := range sorted(d.tables) {
		r.rows = append(r.rows, []value{t})
	}
	return s.filtered(p, r, name)
}

func (s *session) showLast(p *parser) (*result, error) {
	r := &result{names: []string{"TransactionId", "Label", "Database", "Table", "TransactionStatus", "LoadedRows", "FilteredRows"}}
	if l := s.last; l != nil && !s.mysql.cluster.options.Follower {
		r.rows = append(r.rows, []value{strconv.FormatInt(l.id, 10), l.label, l.db, l.table, l.status,
			strconv.FormatInt(l.loaded, 10), strconv.FormatInt(l.filtered, 10)})
	}
	return r, p.End()
}

// showPartitions answers SHOW PARTITIONS FROM t: tables here have one partition, which TRUNCATE replaces.
func (s *session) showPartitions(p *parser) (*result, error) {
	db, name := p.qualified()
	t, err := s.table(db, name)
	if err != nil {
		return nil, err
	}
	r := &result{names: []string{"PartitionId", "PartitionName", "VisibleVersion", "VisibleVersionTime", "State", "PartitionKey", "Range",
		"DistributionKey", "Buckets", "ReplicationNum", "DataSize", "RowCount"}}
	r.rows = append(r.rows, []value{t.partition, t.name, int64(1), moment(t.created), "NORMAL", "", "", strings.Join(t.hash, ", "), t.buckets,
		t.replicas(), t.bytes(), int64(len(t.rows))})
	return s.filtered(p, r, "")
}

// showTransactions answers SHOW TRANSACTION [FROM db] WHERE id = n | label = 'l'.
func (s *session) showTransactions(p *parser) (*result, error) {
	d, err := s.fromDatabase(p)
	if err != nil {
		return nil, err
	}
	r := &result{names: []string{"TransactionId", "Label", "Coordinator", "TransactionStatus", "LoadJobSourceType", "PrepareTime",
		"PreCommitTime", "CommitTime", "FinishTime", "Reason", "ErrorReplicasCount", "ListenerId", "TimeoutMs"}}
	var x *txn
	p.Expect("WHERE")
	switch {
	case p.Take("ID"):
		p.Expect("=")
		x = d.txns[p.Integer()]
	case p.Take("LABEL"):
		p.Expect("=")
		x = s.store.labelled(d, p.Text())
	default:
		p.Fail("expected id or label")
	}
	if err := p.End(); err != nil {
		return nil, err
	}
	if x == nil { // "transaction with label … does not exist"
		return nil, fmt.Errorf("errCode = 2, detailMessage = transaction with that id or label does not exist")
	}
	r.rows = append(r.rows, []value{strconv.FormatInt(x.id, 10), x.label, "FE: 127.0.0.1", x.state, x.source, moment(x.prepared),
		nil, moment(x.committed), moment(x.finished), x.reason, "0", "-1", "600000"})
	return r, nil
}

// showLoads lists the jobs of INSERT; stream loads are not among them.
func (s *session) showLoads(p *parser) (*result, error) {
	d, err := s.fromDatabase(p)
	if err != nil {
		return nil, err
	}
	r := &result{names: []string{"JobId", "Label", "State", "Progress", "Type", "EtlInfo", "TaskInfo", "ErrorMsg", "CreateTime",
		"EtlStartTime", "EtlFinishTime", "LoadStartTime", "LoadFinishTime", "URL", "JobDetails", "TransactionId", "ErrorTablets", "User", "Comment"}}
	for _, label := range sorted(d.labels) {
		for _, x := range d.labels[label] {
			state, progress := "FINISHED", "100.00% (1/1)"
			switch {
			case x.source != "INSERT_STREAMING" || x.state == "PREPARE": // listed when it is over
				continue
			case x.state == "ABORTED":
				state, progress = "CANCELLED", "0.00% (0/1)"
			}
			r.rows = append(r.rows, []value{x.id, x.label, state, progress, "INSERT", nil, "cluster:N/A; timeout(s):14400; max_filter_ratio:0.0",
				x.reason, moment(x.prepared), moment(x.prepared), moment(x.prepared), moment(x.prepared), moment(x.finished), x.url,
				fmt.Sprintf(`{"Unfinished backends":{},"ScannedRows":%d,"TaskNumber":0,"LoadBytes":0,"All backends":{},"FileNumber":0,"FileSize":0}`, x.loaded),
				x.id, "{}", s.mysql.cluster.options.User, ""})
		}
	}
	return s.filtered(p, r, "Label")
}

func moment(at time.Time) value {
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format(time.DateTime)
}

// backends is SHOW BACKENDS and the table function of that name.
func (s *session) backends() *result {
	r := &result{names: []string{"BackendId", "Host", "HeartbeatPort", "BePort", "HttpPort", "BrpcPort", "ArrowFlightSqlPort", "LastStartTime",
		"LastHeartbeat", "Alive", "SystemDecommissioned", "TabletNum", "DataUsedCapacity", "TrashUsedCapacity", "AvailCapacity", "TotalCapacity",
		"UsedPct", "MaxDiskUsedPct", "RemoteUsedCapacity", "Tag", "ErrMsg", "Version", "Status", "HeartbeatFailureCounter", "NodeRole"}}
	for i, b := range s.mysql.cluster.backends {
		host, port, _ := net.SplitHostPort(b.address())
		now := moment(s.mysql.cluster.options.Now())
		r.rows = append(r.rows, []value{int64(10001 + i), host, int64(9050), int64(9060), intOf(port), int64(8060), int64(-1), now, now, "true",
			"false", int64(0), "0.000", "0.000", "100.000 GB", "100.000 GB", "0.00 %", "0.00 %", "0.000", `{"location" : "default"}`, "",
			s.version(), `{"lastSuccessReportTabletsTime":"N/A","isQueryDisabled":false,"isLoadDisabled":false}`, int64(0), "mix"})
	}
	return r.saying(s.mysql.cluster.options.Backend)
}

func (s *session) version() string {
	return fmt.Sprintf("doris-%s-rc01-a1b2c3d4e5", s.mysql.cluster.options.Version)
}

// frontends is SHOW FRONTENDS and the table function of that name.
func (s *session) frontends() *result {
	c := s.mysql.cluster
	_, sql, _ := net.SplitHostPort(c.SQLAddress())
	now := moment(c.options.Now())
	return &result{
		names: []string{"Name", "Host", "EditLogPort", "HttpPort", "QueryPort", "RpcPort", "ArrowFlightSqlPort", "Role", "IsMaster", "ClusterId",
			"Join", "Alive", "ReplayedJournalId", "LastStartTime", "LastHeartbeat", "IsHelper", "ErrMsg", "Version", "CurrentConnected"},
		rows: [][]value{{"fe_stand_in", "127.0.0.1", int64(9010), intOf(c.HTTPPort()), intOf(sql), int64(9020), int64(-1), "FOLLOWER", "true",
			int64(1), "true", "true", int64(1), now, now, "true", "", s.version(), "Yes"}},
	}
}

func intOf(port string) value {
	n, err := strconv.ParseInt(port, 10, 64)
	if err != nil {
		panic(err) // a port of our own
	}
	return n
}

// ddl is SHOW CREATE TABLE's text.
func (t *table) ddl() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE `%s` (\n", t.name)
	for i, c := range t.columns {
		null := "NULL"
		if c.notNull {
			null = "NOT NULL"
		}
		fmt.Fprintf(&b, "  `%s` %s %s", c.name, c.kind, null)
		if c.defaultValue != nil {
			fmt.Fprintf(&b, " DEFAULT %q", *c.defaultValue)
		}
		if c.comment != "" {
			fmt.Fprintf(&b, " COMMENT %q", c.comment)
		}
		if i < len(t.columns)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, ") ENGINE=OLAP\n%s KEY(`%s`)\n", t.model, strings.Join(t.keys, "`, `"))
	if t.comment != "" {
		fmt.Fprintf(&b, "COMMENT '%s'\n", strings.ReplaceAll(t.comment, "'", `\'`))
	}
	how := "RANDOM"
	if len(t.hash) > 0 {
		how = "HASH(`" + strings.Join(t.hash, "`, `") + "`)"
	}
	fmt.Fprintf(&b, "DISTRIBUTED BY %s BUCKETS %s\nPROPERTIES (\n", how, t.buckets)
	all := map[string]string{
		"replication_allocation":   fmt.Sprintf("tag.location.default: %d", t.replicas()),
		"group_commit_interval_ms": strconv.Itoa(defaultGroupInterval), "group_commit_data_bytes": strconv.Itoa(defaultGroupBytes),
		"light_schema_change": "true", "storage_format": "V2",
	}
	for name, v := range t.properties {
		if name != "replication_num" {
			all[name] = v
		}
	}
	for i, name := range sorted(all) {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "%q = %q", name, all[name])
	}
	b.WriteString("\n);")
	return b.String()
}

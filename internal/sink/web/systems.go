package web

import "strings"

// Databend answers streaming loads. It is asked who it is and what it can do before, and to everything else the result
// is empty: there are no tables here. Loads at a time are not what a sink is to be measured by, so it takes many.
func Databend() Answers {
	result := func(rows string) string {
		return `{"id":"sink","node_id":"sink","session_id":"","schema":[],"state":"Succeeded","error":null,"data":[` + rows +
			`],"stats":{"scan_progress":{"rows":0,"bytes":0},"write_progress":{"rows":0,"bytes":0},` +
			`"result_progress":{"rows":0,"bytes":0},"running_time_ms":0},"next_uri":null,"final_uri":null,"affect":null}`
	}
	return Answers{
		Load: `{"id":"sink","stats":{"rows":{rows},"bytes":{bytes}}}`,
		Query: func(body string) string {
			switch {
			case strings.Contains(body, "version()"):
				return result(`["Databend Query v1.2.895-sink"]`)
			case strings.Contains(body, "max_running_queries"):
				return result(`["1024"]`)
			}
			return result("")
		},
	}
}

// Doris answers stream loads as a frontend and a backend in one. DorisSQL says who it is over the MySQL protocol.
func Doris() Answers {
	return Answers{
		Load: `{"TxnId":1,"Label":"{label}","Comment":"","TwoPhaseCommit":"false","Status":"Success","Message":"OK",` +
			`"NumberTotalRows":{rows},"NumberLoadedRows":{rows},"NumberFilteredRows":0,"NumberUnselectedRows":0,` +
			`"LoadBytes":{bytes},"LoadTimeMs":0}`,
		Query: func(string) string {
			return `{"msg":"terapush sink: it takes loads only","code":1,"data":null,"count":0}`
		},
		Redirects: true,
	}
}

// DorisSQL answers the question by which Doris is told from MySQL: a sink.Answer for the sink that speaks its protocol.
func DorisSQL(sql string) (columns []string, rows [][]string, ok bool) {
	const comment = "@@version_comment"
	if !strings.Contains(strings.ToLower(sql), comment) {
		return nil, nil, false
	}
	return []string{comment}, [][]string{{"Doris version doris-3.1.0-sink"}}, true
}

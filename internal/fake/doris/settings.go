package doris

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// settings are the headers of a stream load.
type settings struct {
	format     string // csv, json or parquet
	separator  string
	delimiter  string
	enclose    byte // 0: none
	escape     byte
	trimQuotes bool
	emptyNull  bool
	skipLines  int
	columns    []string // of the file, in its order; nil: the table's
	maxFilter  float64
	strict     bool
	byLine     bool // one JSON object a line; otherwise one value
	outerArray bool // whose elements are the rows
	twoPhase   bool
	comment    string
	group      string // sync_mode, async_mode, or empty
}

// ignored are headers that change nothing here; others that are no load settings are the transport's.
func ignored() []string {
	return []string{"timeout", "timezone", "time_zone", "exec_mem_limit", "send_batch_parallelism", "load_to_single_tablet",
		"memtable_on_sink_node", "load_stream_per_node", "enable_profile", "num_as_string", "fuzzy_parse", "redirect-policy",
		"cloud_cluster", "compute_group", "label", "group_commit", "accept", "user-agent", "authorization", "expect",
		"content-length", "content-type", "transfer-encoding", "host", "connection", "accept-encoding"}
}

// readSettings parses and checks what the backend does. Settings the stand-in has no use for fail the load, so that no
// test passes on something nobody did.
func readSettings(h http.Header) (settings, error) {
	s := settings{format: "csv", separator: "\t", delimiter: "\n"}
	known := map[string]bool{}
	get := func(name string) string {
		known[name] = true
		return h.Get(name)
	}
	yes := func(name string) bool { return strings.EqualFold(get(name), "true") }
	for _, name := range ignored() {
		known[name] = true
	}

	switch format := strings.ToLower(get("format")); format {
	case "", "csv":
	case "csv_with_names":
		s.skipLines = 1
	case "csv_with_names_and_types":
		s.skipLines = 2
	case "json":
		s.format = "json"
	case "parquet":
		s.format = "parquet"
	case "orc", "arrow":
		return s, fmt.Errorf("[NOT_IMPLEMENTED_ERROR]this stand-in does not read %s", format)
	default:
		return s, fmt.Errorf("[DATA_FILE_TYPE_ERROR]unknown data format, format=%s", h.Get("format"))
	}
	if seconds := h.Get("timeout"); seconds != "" {
		if n, err := strconv.Atoi(seconds); err != nil || n < 1 || n > 259200 {
			return s, fmt.Errorf("[INVALID_ARGUMENT]timeout %s is not between 1 and 259200 seconds", seconds)
		}
	}
	s.comment = get("comment")
	for name, to := range map[string]*string{"column_separator": &s.separator, "line_delimiter": &s.delimiter} {
		if text := get(name); text != "" {
			var err error
			if *to, err = unescape(text); err != nil {
				return s, fmt.Errorf("[INTERNAL_ERROR]errCode = 2, detailMessage = %s: %w", name, err)
			}
		}
	}
	for name, to := range map[string]*byte{"enclose": &s.enclose, "escape": &s.escape} {
		if text := get(name); len(text) == 1 {
			*to = text[0]
		} else if text != "" {
			return s, fmt.Errorf("[INVALID_ARGUMENT]%s must be single-char, actually is %s", name, text)
		}
	}
	switch strict := get("strict_mode"); strings.ToLower(strict) {
	case "", "false":
	case "true":
		s.strict = true
	default:
		return s, fmt.Errorf("[INVALID_ARGUMENT]Invalid strict mode format. Must be bool type")
	}
	if ratio := get("max_filter_ratio"); ratio != "" {
		var err error
		if s.maxFilter, err = strconv.ParseFloat(ratio, 64); err != nil || s.maxFilter < 0 || s.maxFilter > 1 {
			return s, fmt.Errorf("[INTERNAL_ERROR]errCode = 2, detailMessage = max_filter_ratio must between 0.0 and 1.0")
		}
	}
	if lines := get("skip_lines"); lines != "" {
		n, err := strconv.Atoi(lines)
		if err != nil || n < 0 {
			return s, fmt.Errorf("[INVALID_ARGUMENT]Invalid 'skip_lines': %s", lines)
		}
		s.skipLines = max(s.skipLines, n)
	}
	s.trimQuotes, s.emptyNull, s.twoPhase = yes("trim_double_quotes"), yes("empty_field_as_null"), h.Get("two_phase_commit") == "true"
	known["two_phase_commit"] = true
	s.byLine, s.outerArray = yes("read_json_by_line"), yes("strip_outer_array")
	if h.Get("read_json_by_line") == "" && h.Get("strip_outer_array") == "" {
		s.byLine = true
	}
	if s.format == "json" && s.byLine && s.outerArray {
		return s, fmt.Errorf("[INTERNAL_ERROR]errCode = 2, detailMessage = only one of strip_outer_array and read_json_by_line may be true")
	}
	if merge := get("merge_type"); merge != "" && !strings.EqualFold(merge, "APPEND") {
		return s, fmt.Errorf("[NOT_IMPLEMENTED_ERROR]this stand-in has no merge_type %s", merge)
	}
	if list := get("columns"); list != "" {
		for name := range strings.SplitSeq(list, ",") {
			if strings.ContainsAny(name, "=(") {
				return s, fmt.Errorf("[NOT_IMPLEMENTED_ERROR]this stand-in computes no columns: %s", name)
			}
			s.columns = append(s.columns, strings.Trim(strings.TrimSpace(name), "`"))
		}
	}
	for name := range h {
		if name = strings.ToLower(name); !known[name] {
			return s, fmt.Errorf("[NOT_IMPLEMENTED_ERROR]this stand-in does not know the header %s", name)
		}
	}
	return s, nil
}

// unescape reads a separator as Doris does (Separator.convertSeparator): \x with hexadecimal digits is bytes, the
// other escapes are the usual ones.
func unescape(text string) (string, error) {
	if hex, ok := strings.CutPrefix(strings.ToLower(text), `\x`); ok {
		hex = strings.ReplaceAll(hex, `\x`, "")
		if hex == "" || len(hex)%2 != 0 {
			return "", fmt.Errorf("hex str %s is not bytes of two digits", text)
		}
		var bytes []byte
		for i := 0; i < len(hex); i += 2 {
			b, err := strconv.ParseUint(hex[i:i+2], 16, 8)
			if err != nil {
				return "", fmt.Errorf("hex str %s has a digit that is none", text)
			}
			bytes = append(bytes, byte(b))
		}
		return string(bytes), nil
	}
	return strings.NewReplacer(`\t`, "\t", `\n`, "\n", `\r`, "\r", `\\`, `\`).Replace(text), nil
}

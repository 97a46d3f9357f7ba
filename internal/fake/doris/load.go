package doris

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// failure is a message for Status Fail.
type failure string

func (f failure) Error() string { return string(f) }

var (
	errPublish = errors.New("[PUBLISH_TIMEOUT]publish timeout")
	errAway    = errors.New("the client got no answer") // nothing is left to send
)

func isTooLong(err error) bool { return errors.Is(err, errTooLong) }

// load is one stream load at a backend.
type load struct {
	backend  *backend
	exchange *exchange
	store    *store
	fault    Fault
	settings settings
	table    *table
	label    string
	txn      *txn  // nil with group commit
	group    bool  // GroupCommit: true
	received int64 // bytes
	total    int64 // rows in the body
	rows     [][]value
	id       int64 // of the transaction, in the answer
	errorURL string
	firstBad string
	rejected [][]byte
}

// head checks the request and begins the transaction, in the order of StreamLoadAction::on_header.
func (l *load) head(db, name string) error {
	x, h := l.exchange, l.exchange.header
	l.id, l.label = -1, h.Get("label")
	if l.fault.Label != "" {
		l.label = l.fault.Label
	}
	mode, err := l.groupMode()
	if err != nil {
		return err
	}
	if err := l.backend.authorized(x); err != nil {
		return err
	}
	hasLength := x.length >= 0
	switch {
	case !hasLength && !x.chunks:
		return failure("[INVALID_ARGUMENT]content_length is empty and transfer-encoding!=chunked, please set content_length or transfer-encoding=chunked")
	case hasLength && x.chunks:
		return failure("[INVALID_ARGUMENT]please do not set both content_length and transfer-encoding")
	}
	if l.settings, err = readSettings(h); err != nil {
		return err
	}
	const maxBytes = 10240 << 20 // streaming_load_max_mb
	if x.length > maxBytes {
		return failure(fmt.Sprintf("[E-216]body size %d exceed BE's conf `streaming_load_max_mb` %d. increase it if you are sure this load is reasonable", x.length, maxBytes))
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.table, err = l.store.find(db, name); err != nil {
		return failure("[ANALYSIS_ERROR]TStatus: " + err.Error())
	}
	if mode == "" && h.Get("group_commit") == "" && h.Get("label") == "" {
		// The property holds where the header does not say otherwise; a label wants its own transaction (assumed).
		if m := l.table.properties["group_commit_mode"]; m != "off_mode" {
			mode = m
		}
	}
	if l.fault.NoGroup {
		mode = ""
	}
	if l.group = mode != ""; l.group {
		l.settings.group = mode
		if x.chunks {
			l.settings.group = "sync_mode" // the size of its log entry cannot be known
		}
		return nil
	}
	if l.fault.Existing != "" {
		return &labelExists{fmt.Sprintf("[LABEL_ALREADY_EXISTS]TStatus: errCode = 2, detailMessage = Label [%s] has already been used, relate to txn [%d], status [%s].", l.label, l.store.lastID, l.fault.Existing), l.fault.Existing}
	}
	if l.label == "" {
		l.label = randomLabel("")
	}
	if l.txn, err = l.store.begin(l.table, l.label, "BACKEND_STREAMING"); err != nil {
		if used := (*labelUsed)(nil); errors.As(err, &used) {
			return &labelExists{"[LABEL_ALREADY_EXISTS]TStatus: " + used.Error(), used.existing()}
		}
		return failure("[INTERNAL_ERROR]TStatus: " + err.Error())
	}
	l.id = l.txn.id
	return nil
}

// groupMode is StreamLoadAction::_handle_group_commit: whether the load is grouped, and what becomes of its label.
func (l *load) groupMode() (string, error) {
	x, h := l.exchange, l.exchange.header
	mode := strings.ToLower(h.Get("group_commit"))
	switch mode {
	case "", "async_mode", "sync_mode", "off_mode":
	default:
		return "", failure("[INVALID_ARGUMENT]group_commit can only be [async_mode, sync_mode, off_mode]")
	}
	o := l.backend.cluster.options
	if mode == "off_mode" || x.length == 0 && !x.chunks || mode == "" && o.ChunkedKeepsLabel {
		return "", nil
	}
	if x.chunks {
		l.label = ""
	}
	if h.Get("two_phase_commit") == "true" || h.Get("partitions") != "" || h.Get("temporary_partitions") != "" || strings.EqualFold(h.Get("partial_columns"), "true") {
		return "", nil // not for groups: a load of its own
	}
	if l.label != "" && (mode != "" || o.LabelNeedsOffMode) {
		return "", failure("[INVALID_ARGUMENT]label and group_commit can't be set at the same time")
	}
	return mode, nil
}

// labelExists is the answer to a label in use.
type labelExists struct{ message, state string }

func (e *labelExists) Error() string { return e.message }

// swallow reads part of the body.
func (l *load) swallow(n int64) {
	if body, err := l.exchange.begin(); err == nil {
		_, _ = io.CopyN(io.Discard, body, n) // it is cut off anyway
	}
}

// body reads the rows.
func (l *load) body() error {
	data, err := l.exchange.readAll()
	l.received = int64(len(data))
	if err != nil {
		return failure("[NETWORK_ERROR]receive body don't equal with body bytes")
	}
	names := l.settings.columns
	if names == nil {
		names = l.table.names()
	}
	at, err := l.table.positions(names)
	if err != nil {
		return err
	}
	records, err := l.settings.read(data, names)
	if err != nil {
		return failure(err.Error())
	}
	for _, r := range records {
		row, err := l.table.arrange(r, at, l.settings.strict)
		if err != nil {
			line := fmt.Sprintf("Reason: %s. src line [%s]; \n", err, bytes.ToValidUTF8(r.line, []byte("\uFFFD")))
			if l.firstBad == "" {
				l.firstBad = strings.TrimSpace(line)
			}
			l.rejected = append(l.rejected, []byte(line))
			continue
		}
		l.rows = append(l.rows, row)
	}
	l.total = int64(len(records))
	filtered := float64(len(l.rejected))
	if filtered > 0 {
		l.errorURL = l.backend.errors.add(l.backend.address(), bytes.Join(l.rejected, nil))
	}
	// The ratio of a group holds for its small loads only: beyond 10 000 rows they go in before all is known.
	const groupRatioRows = 10_000 // group_commit_memory_rows_for_max_filter_ratio
	if filtered > float64(l.total)*l.settings.maxFilter && (!l.group || l.total <= groupRatioRows) {
		return failure(TooManyFiltered)
	}
	return nil
}

// read reads the rows with the named columns. CSV has no names: it is read as it stands.
func (s settings) read(data []byte, names []string) ([]record, error) {
	switch s.format {
	case "json":
		return s.readJSON(data, names)
	case "parquet":
		have, records, err := readParquet(data)
		return pick(have, records, names), err
	default:
		return s.readCSV(data), nil
	}
}

// finish commits, as the load and the script want it.
func (l *load) finish() error {
	l.store.mu.Lock()
	if l.group {
		return l.finishGroup()
	}
	defer l.store.mu.Unlock()
	if err := l.txn.live(); err != nil {
		return failure("[INTERNAL_ERROR]TStatus: " + err.Error())
	}
	l.txn.rows, l.txn.loaded, l.txn.filtered, l.txn.url = l.rows, int64(len(l.rows)), int64(len(l.rejected)), l.errorURL
	switch {
	case l.fault.Linger != nil:
		l.store.linger(l.txn, l.fault.Linger)
		l.exchange.cut()
		return errAway
	case l.settings.twoPhase:
		l.txn.state = "PRECOMMITTED"
	case l.fault.PublishTimeout != nil:
		l.store.commit(l.txn, l.fault.PublishTimeout)
		return errPublish
	default:
		l.store.commit(l.txn, nil)
	}
	return nil
}

// finishGroup joins the table's group, with the store locked. sync_mode waits for its end; async_mode answers once the
// rows are in a log, which the script can lose.
func (l *load) finishGroup() error {
	async := l.settings.group == "async_mode"
	rows := l.rows
	if async && l.fault.LoseWAL {
		rows = nil
	}
	g := l.store.join(l.table, rows, l.received, async)
	l.label, l.id = g.txn.label, g.txn.id
	l.store.mu.Unlock()
	if !async {
		select {
		case <-g.done:
		case <-l.backend.cluster.stop:
			return failure("[CANCELLED]the backend stops")
		}
	}
	return nil
}

func (l *load) abort(err error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.txn != nil && l.txn.state == "PREPARE" {
		l.store.abort(l.txn, err.Error())
	}
}

// send answers in the order of StreamLoadContext::to_json.
func (l *load) send(err error, began time.Time) {
	a := answer{TxnID: l.id, Label: l.label, Comment: l.settings.comment, Status: "Success", Message: "OK",
		NumberTotalRows: l.total, NumberLoadedRows: int64(len(l.rows)), NumberFilteredRows: int64(len(l.rejected)),
		LoadBytes: l.received, LoadTimeMs: time.Since(began).Milliseconds(), ErrorURL: l.errorURL, FirstErrorMsg: l.firstBad}
	if yes := true; l.group {
		a.GroupCommit = &yes
	} else {
		a.TwoPhaseCommit = fmt.Sprint(l.settings.twoPhase)
		a.BeginTxnTimeMs, a.CommitAndPublishTimeMs = new(int64), new(int64)
	}
	if err != nil {
		a.Status, a.Message = "Fail", err.Error()
	}
	if errors.Is(err, errPublish) {
		a.Status = "Publish Timeout"
	}
	if exists := (*labelExists)(nil); errors.As(err, &exists) {
		a.Status, a.ExistingJobStatus = "Label Already Exists", exists.state
	}
	text := marshal(a)
	if l.fault.Truncate {
		text = text[:len(text)/2]
	}
	l.exchange.answer(200, "application/json", text)
}

// answer is a load's, in the order of its keys.
type answer struct {
	TxnID                  int64  `json:"TxnId"`
	Label                  string `json:"Label"`
	Comment                string `json:"Comment"`
	TwoPhaseCommit         string `json:"TwoPhaseCommit,omitempty"`
	GroupCommit            *bool  `json:"GroupCommit,omitempty"`
	Status                 string `json:"Status"`
	ExistingJobStatus      string `json:"ExistingJobStatus,omitempty"`
	Message                string `json:"Message"`
	NumberTotalRows        int64  `json:"NumberTotalRows"`
	NumberLoadedRows       int64  `json:"NumberLoadedRows"`
	NumberFilteredRows     int64  `json:"NumberFilteredRows"`
	NumberUnselectedRows   int64  `json:"NumberUnselectedRows"`
	LoadBytes              int64  `json:"LoadBytes"`
	LoadTimeMs             int64  `json:"LoadTimeMs"`
	BeginTxnTimeMs         *int64 `json:"BeginTxnTimeMs,omitempty"`
	StreamLoadPutTimeMs    int64  `json:"StreamLoadPutTimeMs"`
	ReadDataTimeMs         int64  `json:"ReadDataTimeMs"`
	WriteDataTimeMs        int64  `json:"WriteDataTimeMs"`
	ReceiveDataTimeMs      int64  `json:"ReceiveDataTimeMs"`
	CommitAndPublishTimeMs *int64 `json:"CommitAndPublishTimeMs,omitempty"`
	ErrorURL               string `json:"ErrorURL,omitempty"`
	FirstErrorMsg          string `json:"FirstErrorMsg,omitempty"`
}

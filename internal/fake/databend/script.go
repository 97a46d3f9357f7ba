package databend

// Kind is what a request wants, as scripts tell requests apart.
type Kind string

// The kinds.
const (
	Stream  Kind = "streaming_load"
	Insert  Kind = "insert" // also with a stage attachment
	Copy    Kind = "copy"
	Delete  Kind = "delete"
	Upload  Kind = "upload_to_stage"
	Put     Kind = "put" // to a presigned URL
	Presign Kind = "presign"
	Control Kind = "control" // every other statement
	Page    Kind = "page"    // label: the query id
	Kill    Kind = "kill"    // of a query id, or KILL QUERY; label: the id
)

// Fault is what goes wrong with one request; the zero value is nothing. Fields may be combined.
type Fault struct {
	// Status refuses the request with this HTTP status, before its body is read. Nothing is applied.
	Status int
	// Code fails the statement with this code: inside a 200 for /v1/query, with status 400 for a streaming load, once
	// its body was read. Nothing is applied.
	Code    int
	Message string // the server's words for Status or Code
	// LoseAnswer breaks the connection in the place of the answer. The statement has committed.
	LoseAnswer bool
	// Vanish breaks the connection before the statement commits, which goes on nevertheless.
	Vanish bool
	// Truncate ends the answer's JSON in the middle.
	Truncate bool
	// FewerFiles answers an upload as if its form had broken off: no file is stored, and none is named.
	FewerFiles bool
	// Starting answers so many times in state Starting, with a next_uri, before the result.
	Starting int
	// Late leaves a streaming load lying in the socket until it is closed: its head was read, and nothing was done yet, so
	// no list shows it.
	Late <-chan struct{}
	// Queue keeps a statement that writes from its slot, and so a streaming load's body unread, until it is closed.
	Queue <-chan struct{}
	// Hold keeps the statement running between the look at its label and its commit, until it is closed.
	Hold <-chan struct{}
	// Deaf goes on and commits although the server has agreed to kill the statement: it was committing already.
	Deaf bool
}

func (f Fault) words(fallback string) string {
	if f.Message != "" {
		return f.Message
	}
	return fallback
}

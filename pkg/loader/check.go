package loader

import "context"

// Grade is how a check of a server, or of a machine, came out.
type Grade string

// The grades. Only a failure would stop a push.
const (
	GradeOK      Grade = "ok"
	GradeWarn    Grade = "warn"
	GradeFail    Grade = "fail"
	GradeUnknown Grade = "unknown" // it could not be found out
)

// Finding is the outcome of one check.
type Finding struct {
	Check string `json:"check"` // what was looked at, two or three words: "local_infile", "connection limit"
	Grade Grade  `json:"grade"`
	// Found is what is there, with figures; of a warning or failure also what that means for a push.
	Found string `json:"found"`
	// Fix is the exact command or statement that changes it, "" where there is nothing to do. It is never executed.
	Fix string `json:"fix"`
}

// Intent is the push that a server is checked for.
type Intent struct {
	Preparation
	Workers int
	// BatchBytes is the encoded length of a whole batch, TotalBytes that of the run; 0 where it is not known.
	BatchBytes, TotalBytes int64
}

// Checker checks a server for what would stop or slow a push down. A Loader implements it if it can. It changes
// nothing and waits for a few seconds at most.
type Checker interface {
	// CheckServer comes after Open and before Prepare. Findings come in the order in which a reader wants them. What
	// could not be found out, for want of a privilege or since the server is of another kind, is a finding of
	// GradeUnknown and no error; an error means that the connection is lost.
	CheckServer(ctx context.Context, i Intent) ([]Finding, error)
}

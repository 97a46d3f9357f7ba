package loader

import "context"

// Grade is the result of a check of a server or a machine.
type Grade string

// The grades. Only a failure would stop a push.
const (
	GradeOK      Grade = "ok"
	GradeWarn    Grade = "warn"
	GradeFail    Grade = "fail"
	GradeUnknown Grade = "unknown" // it could not be checked
)

// Finding is the answer to one check.
type Finding struct {
	Check string `json:"check"` // what was checked, in two or three words: "local_infile", "connection limit"
	Grade Grade  `json:"grade"`
	// Found is what was found, with figures; of a warning or failure also what that means for a push.
	Found string `json:"found"`
	// Fix is the exact command or statement that changes it, or "". It is never executed.
	Fix string `json:"fix"`
}

// Intent is the push that a server is checked for.
type Intent struct {
	Preparation
	Workers int
	// BatchBytes is the encoded length of a whole batch, TotalBytes that of the run; 0 if it is not known.
	BatchBytes, TotalBytes int64
	// Advice asks for what only costs time as well. A push leaves it out: it wants to know what could stop it or make
	// its promise untrue, and to begin.
	Advice bool
}

// Checker checks a server for what would stop or slow down a push. It changes nothing, and takes a few seconds at most.
type Checker interface {
	// CheckServer is called between Open and Prepare. It returns the findings in reading order. What could not be
	// checked, for lack of a privilege or on another kind of server, is a finding of GradeUnknown; an error means that
	// the connection is lost.
	CheckServer(ctx context.Context, i Intent) ([]Finding, error)
}

package databend

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// route looks at where rows go: the route of streaming loads, or the storage behind a stage.
func (x *examination) route(ctx context.Context) ([]loader.Finding, error) {
	switch {
	case x.db.plan.method.Name == streamingLoad:
		return x.streaming(ctx)
	case x.db.objects != nil: // its own findings say it
		return nil, nil
	}
	return x.presigned(ctx)
}

func (x *examination) streaming(ctx context.Context) ([]loader.Finding, error) {
	f := loader.Finding{Check: "streaming load", Grade: loader.GradeOK,
		Found: "PUT /v1/streaming_load is there, and bounds no body; a proxy in front of it may (nginx: client_max_body_size, 1 MiB by default)"}
	err := x.db.probeStreaming(ctx)
	var refused *loader.Error
	switch {
	case errors.As(err, &refused):
		f.Grade, f.Found, f.Fix = loader.GradeFail, refused.Err.Error(), refused.Hint
	case said(err) && verdict(err).Retry: // too busy at the moment
		f.Grade, f.Found = loader.GradeUnknown, err.Error()
	case said(err):
		f.Grade, f.Found, f.Fix = loader.GradeFail, err.Error(), hint(err)
	case err != nil:
		return nil, err
	}
	return []loader.Finding{f}, nil
}

// presigned asks for a URL to upload to, and whether somebody answers there. Only method insert cannot do without.
func (x *examination) presigned(ctx context.Context) ([]loader.Finding, error) {
	f := loader.Finding{Check: "presigned uploads", Grade: loader.GradeOK, Found: "they go to the storage itself, and somebody answers there"}
	err := x.db.probePresign(ctx)
	var refused *loader.Error
	switch {
	case err == nil:
	case errors.As(err, &refused), said(err):
		f.Found = err.Error()
		if refused != nil {
			f.Found = refused.Err.Error()
		}
		switch {
		case x.db.plan.method.Name == insert && verdict(err).Retry && refused == nil:
			f.Grade = loader.GradeUnknown
		case x.db.plan.method.Name == insert:
			f.Grade, f.Fix = loader.GradeFail, "--method "+insertNoPresign+", which uploads through the node"
		default:
			f.Found += ": this method uploads through the node, and needs none"
		}
	default:
		return nil, err
	}
	return []loader.Finding{f}, nil
}

// privileges looks for the rights in the list of grants, and where they are not listed asks the server itself: rights
// come by roles, too, and not every version lists those of all of them.
func (x *examination) privileges(ctx context.Context) ([]loader.Finding, error) {
	const check = "privileges"
	name := x.db.plan.name
	there, err := x.db.inspect(ctx)
	if err != nil && !said(err) {
		return nil, err
	}
	var grants []grant
	listed := x.db.run(ctx, statement{sql: "SHOW GRANTS"}, func(r row) error {
		if v := r.texts(); len(v) > 0 {
			grants = append(grants, readGrant(v[len(v)-1])...)
		}
		return nil
	})
	if listed != nil && !said(listed) {
		return nil, listed
	}
	want := needed(there != nil, x.db.plan.method.Caps.Staged && x.db.objects != nil)
	var missing []string
	for _, p := range want {
		if !slices.ContainsFunc(grants, func(g grant) bool { return g.allows(p, name) }) {
			missing = append(missing, p)
		}
	}
	fix := fmt.Sprintf("GRANT %s ON %s.* TO USER %s", strings.Join(want, ", "), name.database, literal(x.db.plan.user))
	if slices.Contains(want, "SUPER") {
		fix = fmt.Sprintf("GRANT SUPER ON *.* TO USER %s; %s", literal(x.db.plan.user),
			strings.Replace(fix, ", SUPER", "", 1))
	}
	if len(missing) == 0 {
		return []loader.Finding{{Check: check, Grade: loader.GradeOK, Found: fmt.Sprintf("%s on %s", strings.Join(want, ", "), name)}}, nil
	}
	f := loader.Finding{Check: check, Grade: loader.GradeUnknown, Fix: fix,
		Found: fmt.Sprintf("SHOW GRANTS lists no %s on %s: a role may have it all the same", strings.Join(missing, ", "), name)}
	if listed != nil {
		f.Found = "the grants cannot be listed: " + listed.Error()
	}
	if there == nil {
		return []loader.Finding{f}, nil
	}
	// It is planned, which checks the rights, and not run.
	err = x.db.run(ctx, statement{sql: fmt.Sprintf("EXPLAIN INSERT INTO %s SELECT * FROM %[1]s", name.quoted())}, nil)
	switch {
	case is(err, permissionDenied):
		f.Found = fmt.Sprintf("rows cannot be put into %s: %v", name, err)
		if strings.Contains(strings.ToUpper(err.Error()), "INSERT") { // else it is the SELECT of the question
			f.Grade = loader.GradeFail
		}
	case err != nil && !said(err):
		return nil, err
	case err == nil && !slices.Contains(missing, "SUPER"):
		f = loader.Finding{Check: check, Grade: loader.GradeOK, Found: fmt.Sprintf("the server plans an INSERT into %s", name)}
	}
	return []loader.Finding{f}, nil
}

// permissionDenied is the code of a right that is missing.
const permissionDenied = 1063

// needed lists the rights of a push: whoever makes a table owns it. A stage that leads to a bucket of others takes SUPER
// (Databend documentation, "CREATE STAGE").
func needed(there, external bool) []string {
	all := []string{"CREATE"}
	if there {
		all = []string{"INSERT", "SELECT"}
	}
	if external {
		all = append(all, "SUPER")
	}
	return all
}

// grant is one right on one object: *.*, database.* or database.table.
type grant struct{ privilege, database, table string }

var grantShape = regexp.MustCompile(`^GRANT (.+?) ON (\S+) TO `)

// readGrant reads a line such as GRANT SELECT,INSERT ON 'default'.'db'.'t' TO 'user'@'%'. What is about other things than
// tables gives nothing.
func readGrant(text string) (all []grant) {
	m := grantShape.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	parts := strings.Split(strings.NewReplacer("'", "", "`", "", `"`, "").Replace(m[2]), ".")
	if len(parts) == 3 { // with the catalog, which is the default one
		parts = parts[1:]
	}
	if len(parts) != 2 {
		return nil
	}
	for p := range strings.SplitSeq(m[1], ",") {
		all = append(all, grant{strings.ToUpper(strings.TrimSpace(p)), parts[0], parts[1]})
	}
	return all
}

func (g grant) allows(privilege string, on tableName) bool {
	if g.privilege != privilege && g.privilege != "ALL" && g.privilege != "OWNERSHIP" {
		return false
	}
	if privilege == "SUPER" { // there is none on less than everything
		return g.database == "*"
	}
	return g.database == "*" || g.database == on.database && (g.table == "*" || g.table == on.table)
}

package databend

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// streaming looks for the route of streaming loads.
func (e *doctor) streaming(ctx context.Context) (none loader.Finding, err error) {
	if e.plan.method.Name != streamingLoad {
		return none, nil
	}
	err = e.probeStreaming(ctx)
	var refused *loader.Error
	switch {
	case err == nil:
		return sqlload.OK("PUT /v1/streaming_load is there, and bounds no body; " +
			"a proxy in front of it may (nginx: client_max_body_size, 1 MiB by default)"), nil
	case errors.As(err, &refused):
		return sqlload.Fail(refused.Err.Error(), refused.Hint), nil
	case said(err) && verdict(err).Retry: // too busy at the moment
		return unknown(err.Error(), ""), nil
	}
	return sqlload.Fail(err.Error(), hint(err)), lost(err)
}

// presigned asks for a URL to upload to, and whether somebody answers there. Only method insert cannot do without, and the
// findings of a store of our own say it better.
func (e *doctor) presigned(ctx context.Context) (none loader.Finding, err error) {
	if e.plan.method.Name == streamingLoad || e.store != nil {
		return none, nil
	}
	err = e.probePresign(ctx)
	var refused *loader.Error
	switch {
	case err == nil:
		return sqlload.OK("they go to the storage itself, and somebody answers there"), nil
	case errors.As(err, &refused):
		err = refused.Err
	case !said(err):
		return none, err
	}
	switch {
	case e.plan.method.Name != insert:
		return sqlload.OK(err.Error() + ": this method uploads through the node, and needs none"), nil
	case refused == nil && verdict(err).Retry:
		return unknown(err.Error(), ""), nil
	}
	return sqlload.Fail(err.Error(), "--method "+insertNoPresign+", which uploads through the node"), nil
}

// table checks the table as Prepare would.
func (e *doctor) table(ctx context.Context) (none loader.Finding, err error) {
	of, err := e.Check(ctx, conn{of: e.opened}, e.intent)
	e.findings = append(e.findings, of.Findings...)
	e.there = len(of.Missing) == 0
	return none, err
}

// privileges looks for the rights in the list of grants, and where they are not listed asks the server itself: rights
// come by roles, too, and not every version lists those of all of them.
func (e *doctor) privileges(ctx context.Context) (none loader.Finding, err error) {
	lines, refused := e.rows(ctx, "SHOW GRANTS")
	if err := lost(refused); err != nil {
		return none, err
	}
	var grants []grant
	for _, row := range lines {
		grants = append(grants, readGrant(row[len(row)-1])...)
	}
	want := []string{"CREATE"} // whoever makes a table owns it
	if e.there {
		want = []string{"INSERT", "SELECT"}
	}
	fix := e.grant(strings.Join(want, ", "))
	if e.store != nil { // a stage that leads to a bucket of others (Databend documentation, "CREATE STAGE")
		want = append(want, "SUPER")
		fix = fmt.Sprintf("GRANT SUPER ON *.* TO USER %s; %s", literal(e.plan.user), fix)
	}
	name := e.plan.name
	missing := slices.DeleteFunc(slices.Clone(want), func(privilege string) bool {
		return slices.ContainsFunc(grants, func(g grant) bool { return g.allows(privilege, name) })
	})
	if len(missing) == 0 {
		return sqlload.OK(fmt.Sprintf("%s on %s", strings.Join(want, ", "), name)), nil
	}
	notListed := fmt.Sprintf("SHOW GRANTS lists no %s on %s: a role may have it all the same",
		strings.Join(missing, ", "), name)
	if refused != nil {
		notListed = "the grants cannot be listed: " + refused.Error()
	}
	if !e.there {
		return unknown(notListed, fix), nil
	}
	// It is planned, which checks the rights, and not run.
	err = e.exec(ctx, fmt.Sprintf("EXPLAIN INSERT INTO %s SELECT * FROM %[1]s", name.quoted()))
	denied := fmt.Sprintf("rows cannot be put into %s: %v", name, err)
	switch {
	case lost(err) != nil:
		return none, err
	case is(err, permissionDenied) && strings.Contains(strings.ToUpper(err.Error()), "INSERT"):
		return sqlload.Fail(denied, fix), nil
	case is(err, permissionDenied): // it is the SELECT of the question
		return unknown(denied, fix), nil
	case err == nil && !slices.Contains(missing, "SUPER"):
		return sqlload.OK(fmt.Sprintf("the server plans an INSERT into %s", name)), nil
	}
	return unknown(notListed, fix), nil
}

// permissionDenied is the code of a right that is missing.
const permissionDenied = 1063

// grant is one right on one object: *.*, database.* or database.table.
type grant struct{ privilege, database, table string }

var grantShape = regexp.MustCompile(`^GRANT (.+?) ON (\S+) TO `)

// readGrant reads a line such as GRANT SELECT,INSERT ON 'default'.'db'.'t' TO 'user'@'%'. What is about other things
// than tables gives nothing.
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

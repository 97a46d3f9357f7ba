package databend

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

func stageRules() []rule {
	stage := `(~|\w+)`
	return []rule{
		{shape: shape(`CREATE (OR REPLACE )?STAGE (IF NOT EXISTS )?(\w+)(?: URL = ` + textPart + ` CONNECTION = \((.*)\))?`), run: (*Fake).createStage},
		{shape: shape(`DROP STAGE (IF EXISTS )?(\w+)`), run: func(f *Fake, _ session, m []string) (result, error) {
			_, err := f.store.stage(m[2])
			delete(f.store.stages, m[2])
			if m[1] != "" {
				err = nil
			}
			return result{}, err
		}},
		{shape: shape(`DESC STAGE ` + stage), run: func(f *Fake, _ session, m []string) (result, error) {
			url, err := f.store.stage(m[1])
			return result{names: []string{"name", "url"}, types: []string{"String", "String"}, rows: [][]*string{texts(m[1], url)}}, err
		}},
		{shape: shape(`PRESIGN UPLOAD @` + stage + `/(\S+)`), kind: Presign, run: (*Fake).presign},
		{shape: shape(`LIST @` + stage + `/?(\S*)`), run: func(f *Fake, _ session, m []string) (result, error) {
			r := result{names: []string{"name", "size", "md5"}, types: []string{"String", "UInt64", "Nullable(String)"}}
			_, err := f.store.stage(m[1])
			for _, path := range f.store.list(m[1], m[2]) {
				r.rows = append(r.rows, append(texts(path, strconv.Itoa(len(f.store.files[m[1]+"/"+path]))), nil))
			}
			return r, err
		}},
		{shape: shape(`REMOVE @` + stage + `/(\S+)(?: PATTERN = ` + textPart + `)?`), run: (*Fake).remove},
	}
}

func (f *Fake) createStage(_ session, m []string) (result, error) {
	_, missing := f.store.stage(m[3])
	switch {
	case m[1] != "" && m[2] != "":
		return result{}, failed(1005, "option IF NOT EXISTS and OR REPLACE are incompatible.")
	case missing == nil && m[2] != "":
		return result{}, nil
	case missing == nil && m[1] == "":
		return result{}, failed(2502, "Stage '%s' already exists", m[3])
	}
	f.store.stages[m[3]] = strings.TrimSuffix(unquote("'"+m[4]+"'"), "/")
	return result{}, nil
}

func (f *Fake) presign(s session, m []string) (result, error) {
	if url, err := f.store.stage(m[1]); err != nil {
		return result{}, err
	} else if !f.options.Presign || url != "" {
		return result{}, failed(3902, "storage doesn't support presign operation")
	}
	return result{
		names: []string{"method", "headers", "url"}, types: []string{"String", "Variant", "String"},
		rows: [][]*string{texts("PUT", `{"x-stand-in":"signed"}`, "http://"+s.host+"/presigned/"+m[1]+"/"+m[2]+"?X-Amz-Signature=stand-in")},
	}, nil
}

// remove removes one file, or those of a folder whose names below it match.
func (f *Fake) remove(_ session, m []string) (result, error) {
	pattern, err := regexp.Compile("^(?:" + unquote("'"+m[3]+"'") + ")$")
	if err != nil {
		return result{}, failed(1006, "pattern: %v", err)
	}
	folder := strings.TrimSuffix(m[2], "/") + "/"
	for _, path := range f.store.list(m[1], "") {
		below, in := strings.CutPrefix(path, folder)
		if path == m[2] && m[3] == "" || in && (m[3] == "" || pattern.MatchString(below)) {
			delete(f.store.files, m[1]+"/"+path)
		}
	}
	return result{}, nil
}

// servePresigned is the object store behind the server's own stages.
func (f *Fake) servePresigned(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/presigned/")
	fault := f.next(Put, "", path, "", r.Header)
	switch {
	case fault.Status != 0:
		refuseObject(w, fault.Status, "SlowDown", fault.words("Please reduce your request rate."))
		return
	case r.Method != http.MethodPut || r.ContentLength < 0 || r.Header.Get("X-Stand-In") != "signed" ||
		r.URL.Query().Get("X-Amz-Signature") != "stand-in" || r.Header.Get("Authorization") != "":
		refuseObject(w, http.StatusForbidden, "SignatureDoesNotMatch", "the request is not the one that was signed")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.store.files[path] = body
	f.mu.Unlock()
	if fault.LoseAnswer {
		cut(w)
	}
}

func refuseObject(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>"+message+"</Message></Error>")
}

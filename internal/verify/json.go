package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strconv"
	"strings"
)

// canonicalJSON returns a document in one form, whatever blanks, order of fields, escapes and notation of numbers a server
// has given it: PostgreSQL's jsonb sorts fields by their length, and MySQL writes 1.50 as 1.5. What is no JSON stays as it is.
func canonicalJSON(text []byte) []byte {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	var document any
	if err := in.Decode(&document); err != nil {
		return text
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return text
	}

	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	if err := to.Encode(canonical(document)); err != nil {
		return text
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// canonical replaces the numbers of a document. Fields of an object are encoded in the order of their names.
func canonical(value any) any {
	switch v := value.(type) {
	case json.Number:
		return canonicalNumber(v)
	case []any:
		for i := range v {
			v[i] = canonical(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = canonical(v[name])
		}
	}
	return value
}

// canonicalNumber writes equal numbers in one way. One with a huge exponent stays as it is: its digits would fill the memory.
func canonicalNumber(n json.Number) json.Number {
	const most = 400 // more than the largest double has
	_, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || e > most || e < -most) || len(n) > most {
		return n
	}
	exact, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return n
	}
	digits, _ := exact.FloatPrec()
	return json.Number(exact.FloatString(digits))
}

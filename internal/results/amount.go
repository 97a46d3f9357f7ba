package results

// Amount is a setting's value as a number, for an axis of a chart: 2000, 16MiB, and of a duration its seconds. It is false
// for text.
func Amount(s string) (amount float64, ok bool) {
	v := parseValue(s)
	return v.amount, v.kind != text
}

// IsDuration tells whether a setting's value is a time, so that its Amount is seconds.
func IsDuration(s string) bool { return parseValue(s).kind == duration }

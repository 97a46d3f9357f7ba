package loader

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Option is a setting of a method.
type Option struct {
	Name    string // also the flag's name, without dashes
	Kind    OptionKind
	Default string
	Help    string
}

// OptionKind is the type of an option's value.
type OptionKind uint8

// The kinds of option.
const (
	StringOption OptionKind = iota
	BoolOption
	IntOption // in decimal, 0 to the largest int64
)

// String returns the kind as help texts name it: string, bool or int.
func (k OptionKind) String() string { return [...]string{"string", "bool", "int"}[k] }

// Parse reads a value of the kind: a string, a bool or an int64.
func (k OptionKind) Parse(text string) (any, error) {
	switch k {
	case BoolOption:
		if on, err := strconv.ParseBool(text); err == nil {
			return on, nil
		}
		return nil, fmt.Errorf("%q is not a valid bool: true or false", text)
	case IntOption:
		if n, err := strconv.ParseUint(text, 10, 63); err == nil {
			return int64(n), nil
		}
		return nil, fmt.Errorf("%q is not a valid int: 0 or more", text)
	case StringOption:
	}
	return text, nil
}

// OptionsOf returns the fields of structs that are options, in their order. Such a field is exported, a string, a bool
// or an int64, and tagged with its option's name, default and help; without a default it is the zero of its type:
//
//	Role string `option:"iam-role" default:"default" help:"the role that reads the bucket"`
//
// Fields of embedded structs count, so that methods can share some. A tagged field that is anything else panics.
func OptionsOf(structs ...any) []Option {
	var all []Option
	for _, s := range structs {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(s)) {
			if o, is := optionOf(f); is {
				all = append(all, o)
			}
		}
	}
	return all
}

func optionOf(f reflect.StructField) (o Option, is bool) {
	if o.Name, is = f.Tag.Lookup("option"); !is {
		return o, false
	}

	kinds := map[reflect.Type]OptionKind{
		reflect.TypeFor[string](): StringOption, reflect.TypeFor[bool](): BoolOption, reflect.TypeFor[int64](): IntOption,
	}
	known := false
	o.Kind, known = kinds[f.Type]
	o.Help = f.Tag.Get("help")
	o.Default = cmp.Or(f.Tag.Get("default"), fmt.Sprint(reflect.Zero(f.Type)))
	if _, err := o.Kind.Parse(o.Default); err != nil || !known || !f.IsExported() {
		panic(fmt.Sprintf("loader: field %s cannot be option %s with default %q", f.Name, o.Name, o.Default))
	}
	return o, true
}

// CheckOptions refuses options that the method does not have, which would have no effect, and values that are not of
// their kind; an empty text stands for the default. It returns all problems.
func (m Method) CheckOptions(given map[string]string) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(m.Options, func(o Option) bool { return o.Name == name })
		if i < 0 {
			problems = append(problems, fmt.Errorf("--%s is not an option of method %s", name, m.Name))
			continue
		}
		if _, err := m.Options[i].Kind.Parse(cmp.Or(given[name], m.Options[i].Default)); err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}

// ReadOptions returns the target's method, and sets the fields of a struct, as OptionsOf describes it, to the target's
// options or else to the defaults. into points to the struct, which may have options of other methods, too.
//
// It returns an error if there is no such method, or that of CheckOptions. Fields whose values can be read are set
// nevertheless.
func ReadOptions(d Driver, t Target, into any) (Method, error) {
	s := reflect.ValueOf(into).Elem()
	for _, f := range reflect.VisibleFields(s.Type()) {
		o, is := optionOf(f)
		if !is {
			continue
		}
		if value, err := o.Kind.Parse(cmp.Or(t.Options[o.Name], o.Default)); err == nil {
			s.FieldByIndex(f.Index).Set(reflect.ValueOf(value))
		}
	}

	m, found := FindMethod(d, t.Method)
	if found {
		return m, m.CheckOptions(t.Options)
	}
	var names []string
	for _, m := range d.Methods() {
		names = append(names, m.Name)
	}
	return m, fmt.Errorf("method %q does not exist; %s has %s", t.Method, d.Name(), strings.Join(names, ", "))
}

package loader_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// tableOptions are shared by the methods.
type tableOptions struct {
	Unlogged bool `option:"unlogged" help:"make the table UNLOGGED"`
}

type bucketOptions struct {
	Role    string `option:"iam-role" default:"default" help:"the role that reads the bucket"`
	Keys    bool   `option:"s3-keys" default:"true" help:"read with keys"`
	Waits   int64  `option:"wait" default:"2500" help:"milliseconds"`
	Objects int64  `option:"objects"`
}

// allOptions are those of a back-end, and what it makes of them.
type allOptions struct {
	tableOptions
	bucketOptions
	Derived string
}

func defaultOptions() allOptions {
	return allOptions{bucketOptions: bucketOptions{Role: "default", Keys: true, Waits: 2500}}
}

func TestOptionsOf(t *testing.T) {
	want := []loader.Option{
		{Name: "unlogged", Kind: loader.BoolOption, Default: "false", Help: "make the table UNLOGGED"},
		{Name: "iam-role", Default: "default", Help: "the role that reads the bucket"},
		{Name: "s3-keys", Kind: loader.BoolOption, Default: "true", Help: "read with keys"},
		{Name: "wait", Kind: loader.IntOption, Default: "2500", Help: "milliseconds"},
		{Name: "objects", Kind: loader.IntOption, Default: "0"},
	}
	require.Equal(t, want, loader.OptionsOf(allOptions{}), "of embedded structs")
	require.Equal(t, want, loader.OptionsOf(tableOptions{}, bucketOptions{}), "of several")
	require.Empty(t, loader.OptionsOf(struct{ Derived string }{}))

	type (
		hidden struct {
			n int64 `option:"x"`
		}
		duration struct {
			N time.Duration `option:"x"`
		}
		number struct {
			N int64 `option:"x" default:"many"`
		}
		flag struct {
			N bool `option:"x" default:"perhaps"`
		}
	)
	for says, wrong := range map[string]any{
		`field n cannot be option x with default "0"`:       hidden{n: 1},
		`field N cannot be option x with default "0s"`:      duration{},
		`field N cannot be option x with default "many"`:    number{},
		`field N cannot be option x with default "perhaps"`: flag{},
	} {
		require.PanicsWithValue(t, "loader: "+says, func() { loader.OptionsOf(wrong) })
	}
}

// optional is a driver with options, of which ReadOptions asks nothing but this.
type optional struct{ loader.Driver }

func (optional) Name() string { return "base" }

func (optional) Methods() []loader.Method {
	return []loader.Method{
		{Name: "copy", Options: loader.OptionsOf(tableOptions{})},
		{Name: "s3-copy", Options: loader.OptionsOf(bucketOptions{})},
	}
}

func TestReadOptions(t *testing.T) {
	const copies, staged = "copy", "s3-copy"
	changed := func(change func(*allOptions)) allOptions {
		o := defaultOptions()
		change(&o)
		return o
	}
	for _, c := range []struct {
		method string
		given  map[string]string
		want   allOptions
		says   string
	}{
		{staged, nil, defaultOptions(), ""},
		{copies, map[string]string{"unlogged": "true"}, changed(func(o *allOptions) { o.Unlogged = true }), ""},
		{copies, map[string]string{"unlogged": "0"}, defaultOptions(), ""},
		{
			staged, map[string]string{"iam-role": "x", "s3-keys": "false", "wait": "0", "objects": "9223372036854775807"},
			allOptions{bucketOptions: bucketOptions{Role: "x", Objects: 1<<63 - 1}}, "",
		},
		{staged, map[string]string{"iam-role": "", "s3-keys": "", "wait": ""}, defaultOptions(), ""},

		{staged, map[string]string{"objects": "9223372036854775808"}, defaultOptions(),
			`--objects: "9223372036854775808" is not a valid int: 0 or more`},
		{staged, map[string]string{"objects": "-1"}, defaultOptions(), `--objects: "-1" is not a valid int: 0 or more`},
		{staged, map[string]string{"objects": "1e3"}, defaultOptions(), `--objects: "1e3" is not a valid int: 0 or more`},
		{staged, map[string]string{"s3-keys": "yes"}, changed(func(o *allOptions) { o.Keys = false }),
			`--s3-keys: "yes" is not a valid bool: true or false`},
		{copies, map[string]string{"wait": "1"}, changed(func(o *allOptions) { o.Waits = 1 }),
			"--wait is not an option of method copy"},
		{staged, map[string]string{"wayt": "1", "objects": "x", "iam-role": "y"},
			changed(func(o *allOptions) { o.Role = "y" }),
			`--objects: "x" is not a valid int: 0 or more` + "\n--wayt is not an option of method s3-copy"},
	} {
		var got allOptions
		m, err := loader.ReadOptions(optional{}, loader.Target{Method: c.method, Options: c.given}, &got)
		if c.says == "" {
			require.NoError(t, err, "%v", c.given)
		} else {
			require.EqualError(t, err, c.says)
		}
		require.Equal(t, c.want, got, "%v", c.given)
		require.Equal(t, c.method, m.Name)
	}

	m, err := loader.ReadOptions(optional{}, loader.Target{}, new(allOptions))
	require.NoError(t, err)
	require.Equal(t, "copy", m.Name, "the first")
	_, err = loader.ReadOptions(optional{}, loader.Target{Method: "load"}, new(allOptions))
	require.EqualError(t, err, `method "load" does not exist; base has copy, s3-copy`)
}

package push

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func TestDestination(t *testing.T) {
	for _, c := range []struct{ name, target, via, want string }{
		{name: "an address", target: "postgres://u@10.1.2.3:5432/d", want: "10.1.2.3"},
		{name: "an address of version 6", target: "mysql://u@[fd00::1]/d", want: "fd00::1"},
		{name: "the first host counts", target: "mysql://u@10.1.2.3,other/d", want: "10.1.2.3"},
		{name: "a socket", target: "postgres:///d?host=/run/postgresql", want: ""},
		{name: "nothing is sent", target: "discard://", want: ""},
		{name: "a bucket of Amazon's", target: "s3://bucket/p", want: "bucket"},
		{name: "a store on this machine", target: "s3://bucket/p?endpoint=http://127.0.0.1:9000", want: "127.0.0.1"},
		{name: "a staged method sends to the store", target: "databend://u@127.0.0.1/d", via: "s3://bucket/p?endpoint=http://10.1.2.3:9000", want: "10.1.2.3"},
	} {
		target, err := loader.ParseTarget(c.target)
		require.NoError(t, err)
		if c.via != "" {
			via, err := loader.ParseTarget(c.via)
			require.NoError(t, err)
			target.Via = &via
		}
		require.Equal(t, c.want, destination(target), c.name)
	}
}

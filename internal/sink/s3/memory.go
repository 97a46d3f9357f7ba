package s3

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/sink"
)

// object is what is remembered of an object: up to three kilobytes of names.
type object struct {
	bucket, key string
	size        int64
	etag        string
	at          time.Time
	fields      []string // x-amz-meta-…, names and values in turn
}

// objects remembers the last ones that were put.
type objects struct{ sink.Recent[*object] }

func (o *objects) put(one *object)           { o.Put(one.bucket+"/"+one.key, one) }
func (o *objects) remove(bucket, key string) { o.Remove(bucket + "/" + key) }

func (o *objects) find(bucket, key string) (*object, bool) { return o.Find(bucket + "/" + key) }

// below lists a bucket's objects whose keys begin with prefix and come behind after, by key.
func (o *objects) below(bucket, prefix, after string) []*object {
	all := o.Where(func(one *object) bool {
		return one.bucket == bucket && strings.HasPrefix(one.key, prefix) && one.key > after
	})
	slices.SortFunc(all, func(a, b *object) int { return strings.Compare(a.key, b.key) })
	return all
}

// buckets returns those of the objects, by name.
func (o *objects) buckets() []string {
	all := map[string]bool{}
	for _, one := range o.Where(func(*object) bool { return true }) {
		all[one.bucket] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// number returns a new one, as text.
func (s *store) number() string { return strconv.FormatInt(s.last.Add(1), 10) }

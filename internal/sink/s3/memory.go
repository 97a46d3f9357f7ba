package s3

import (
	"container/list"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxObjects is how many objects are remembered, of which each may have three kilobytes of names.
const maxObjects = 10_000

// object is what is remembered of an object.
type object struct {
	bucket, key string
	size        int64
	etag        string
	at          time.Time
	fields      []string // x-amz-meta-…, names and values in turn
}

// objects remembers the last ones that were put.
type objects struct {
	mu    sync.Mutex
	known map[string]*list.Element // by bucket/key
	order list.List                // of *object, the oldest first
}

func (o *objects) put(one *object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[string]*list.Element{}
	}
	o.forget(one.bucket, one.key)
	o.known[one.bucket+"/"+one.key] = o.order.PushBack(one)
	if o.order.Len() > maxObjects {
		oldest := o.order.Front().Value.(*object)
		o.forget(oldest.bucket, oldest.key)
	}
}

func (o *objects) find(bucket, key string) (*object, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, found := o.known[bucket+"/"+key]
	if !found {
		return nil, false
	}
	return e.Value.(*object), true
}

func (o *objects) remove(bucket, key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget(bucket, key)
}

func (o *objects) forget(bucket, key string) {
	if e, found := o.known[bucket+"/"+key]; found {
		o.order.Remove(e)
		delete(o.known, bucket+"/"+key)
	}
}

// below lists a bucket's objects whose keys begin with prefix and come behind after, by key.
func (o *objects) below(bucket, prefix, after string) []*object {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []*object
	for _, e := range o.known {
		one := e.Value.(*object)
		if one.bucket == bucket && strings.HasPrefix(one.key, prefix) && one.key > after {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *object) int { return strings.Compare(a.key, b.key) })
	return all
}

// buckets are those of the objects.
func (o *objects) buckets() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]bool{}
	for _, e := range o.known {
		all[e.Value.(*object).bucket] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// number is a new one, as text.
func (s *store) number() string { return strconv.FormatInt(s.last.Add(1), 10) }

package loader

import "fmt"

// Registry finds drivers by URL scheme.
type Registry struct {
	drivers  []Driver
	byScheme map[string]Driver
}

// NewRegistry returns an error if two drivers have the same scheme.
func NewRegistry(drivers ...Driver) (*Registry, error) {
	r := &Registry{drivers: drivers, byScheme: make(map[string]Driver)}
	for _, d := range drivers {
		for _, s := range d.Schemes() {
			if other, taken := r.byScheme[s]; taken {
				return nil, fmt.Errorf("loader: scheme %q belongs to %s and to %s", s, other.Name(), d.Name())
			}
			r.byScheme[s] = d
		}
	}
	return r, nil
}

// Drivers lists the drivers in the order they were given.
func (r *Registry) Drivers() []Driver { return r.drivers }

// Schemes lists every URL scheme, in the order of the drivers.
func (r *Registry) Schemes() []string {
	var all []string
	for _, d := range r.drivers {
		all = append(all, d.Schemes()...)
	}
	return all
}

// Lookup finds the driver of a scheme.
func (r *Registry) Lookup(scheme string) (Driver, bool) {
	d, ok := r.byScheme[scheme]
	return d, ok
}

// FindMethod finds a driver's method by name, its default for "".
func FindMethod(d Driver, name string) (Method, bool) {
	for _, m := range d.Methods() {
		if name == "" || m.Name == name {
			return m, true
		}
	}
	return Method{}, false
}

package results

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// MarshalJSON implements json.Marshaler.
func (f Fact) MarshalJSON() ([]byte, error) {
	all := map[string]any{"at": f.At}
	for name, v := range f.Figures {
		all[name] = v
	}
	return json.Marshal(all)
}

// UnmarshalJSON implements json.Unmarshaler. Older records have 0 for what was not published.
func (f *Fact) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*f = Fact{Figures: map[string]float64{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var err error
		if name == "at" {
			err = json.Unmarshal(all[name], &f.At)
		} else if v := 0.0; slices.Contains(Quantities(), name) {
			if err = json.Unmarshal(all[name], &v); v != 0 {
				f.Figures[name] = v
			}
		}
		if err != nil {
			return fmt.Errorf("a published figure, %s: %w", name, err)
		}
	}
	return nil
}

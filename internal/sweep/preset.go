package sweep

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/terapush/terapush/experiments"
	"github.com/terapush/terapush/internal/config"
)

const presetSuffix = ".yaml"

// Presets lists the plans that come with terapush, in the order of their names.
func Presets() []string {
	files, err := fs.Glob(experiments.Files(), "*"+presetSuffix)
	if err != nil {
		return nil // of a pattern that is wrong, and this one is not
	}
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], presetSuffix)
	}
	slices.Sort(files) // as files, a name stands behind those that it begins
	return files
}

// Preset is the text of one of the plans that come with terapush, and the name of its file for errors.
func Preset(name string) (file string, text []byte, err error) {
	text, err = fs.ReadFile(experiments.Files(), name+presetSuffix)
	if err != nil {
		return "", nil, config.Unknown("preset", name, Presets())
	}
	return path.Join("experiments", name+presetSuffix), text, nil
}

// PresetTitle is the one line that says what a preset reproduces, "" when there is none of the name.
func PresetTitle(name string) string {
	_, text, err := Preset(name)
	if err != nil {
		return ""
	}
	var plan struct {
		Title string `yaml:"title"`
	}
	if yaml.Unmarshal(text, &plan) != nil {
		return ""
	}
	return plan.Title
}

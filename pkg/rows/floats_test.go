package rows

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A text has the number's bits for readers of 32 and of 64 bits, and no more digits than it needs.
func TestFloats(t *testing.T) {
	random := rand.New(rand.NewPCG(42, 1))
	all := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 65535.9375, 1 << 16, -1 << 17, math.MaxFloat32, math.SmallestNonzeroFloat32}
	for range 20_000 {
		all = append(all, float32(random.IntN(1<<17)-1<<16)/(1<<14), math.Float32frombits(random.Uint32()&^(1<<30)))
	}
	for _, f := range all {
		value := binary.LittleEndian.AppendUint32(nil, math.Float32bits(f))
		text := AppendFloats(nil, value)
		wide, err := strconv.ParseFloat(string(text[1:len(text)-1]), 64)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(float64(f)), math.Float64bits(wide), "%s", text)
		require.LessOrEqual(t, len(text)-2, len(strconv.FormatFloat(float64(f), 'f', -1, 64)))
		back, err := ParseFloats(text)
		require.NoError(t, err)
		require.Equal(t, value, back, "%s", text)
	}

	three, err := ParseFloats([]byte(" [1, -2.5,3e0 ]\n"))
	require.NoError(t, err)
	assert.Equal(t, "[1,-2.5,3]", string(AppendFloats(nil, three)))
	for _, wrong := range []string{"", "[]", "1,2", "[1,2", "[1,,2]", "[1,x]", "[1e39]"} {
		_, err := ParseFloats([]byte(wrong))
		assert.Error(t, err, wrong)
	}
}

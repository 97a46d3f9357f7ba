package oracle

import (
	"flag"
	"os"
	"testing"
)

// TestMain gives every test the credentials of the object store, which tests that run side by side cannot set, and lets
// more of them run than there are cores: most of their time goes into pauses before retries and into waiting for locks.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": secret} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

package file_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/terapush/terapush/internal/file"
)

// A run may be kept on a file system without a sync of folders, as a record may. That of processes is one.
func TestFoldersThatCannotBeSynced(t *testing.T) {
	require.NoError(t, file.SyncFolder("/proc"))
	require.Error(t, file.SyncFolder("/proc/none"))
}

// Where the folder cannot be written to, a file that can be is written in place.
func TestWriteInAFolderOfOthers(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the test, and what it may not with it
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData // root may write anywhere
	require.NoError(t, unix.Capset(&header, &none[0]))
	dir := t.TempDir()
	page, kept := filepath.Join(dir, "page"), filepath.Join(dir, "kept")
	require.NoError(t, os.WriteFile(page, []byte("a longer text that was there"), 0o640))
	require.NoError(t, os.WriteFile(kept, []byte("kept"), 0o440))
	require.NoError(t, os.Chmod(dir, 0o555))
	defer func() { require.NoError(t, os.Chmod(dir, 0o755)) }()
	before, err := os.Stat(page)
	require.NoError(t, err)
	require.NoError(t, file.Writable(page))
	require.NoError(t, file.Write(page, []byte("new")))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, "new", string(text))
	after, err := os.Stat(page)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
	for _, path := range []string{kept, filepath.Join(dir, "new")} {
		require.ErrorIs(t, file.Writable(path), fs.ErrPermission)
		require.ErrorIs(t, file.Write(path, []byte("x")), fs.ErrPermission)
	}
}

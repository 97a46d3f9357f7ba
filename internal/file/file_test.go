//go:build linux

package file_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/terapush/terapush/internal/file"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings")
	require.NoError(t, os.WriteFile(path, []byte("12345678"), 0o600))
	text, err := file.Read(path, 8)
	require.NoError(t, err)
	require.Equal(t, "12345678", string(text))
	_, err = file.Read(path, 7)
	require.EqualError(t, err, path+" has more than 7 B: is it the right file?")
	_, err = file.Read("/dev/zero", file.MaxSettings)
	require.EqualError(t, err, "/dev/zero has more than 1.0 MiB: is it the right file?")
	_, err = file.Read(path+"x", 8)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestWrite(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	old := func(name string, mode fs.FileMode) {
		require.NoError(t, os.WriteFile(at(name), []byte("a longer text that was there"), 0o600))
		require.NoError(t, os.Chmod(at(name), mode))
	}
	require.NoError(t, os.Mkdir(at("runs"), 0o700))
	old("secret", 0o600)
	old("runs/17", 0o664)
	old("kept", 0o444)
	require.NoError(t, os.Symlink("runs/17", at("latest")))
	require.NoError(t, os.Symlink("latest", at("link")))
	require.NoError(t, os.Symlink("runs/18", at("next")))
	for name, want := range map[string]struct {
		file string
		mode fs.FileMode
	}{
		"new": {"new", 0o640}, "secret": {"secret", 0o600}, "link": {"runs/17", 0o664}, "next": {"runs/18", 0o640}, "kept": {"kept", 0o444},
	} {
		require.NoError(t, file.Writable(at(name)), name)
		require.NoError(t, file.Write(at(name), []byte(name)), name)
		text, err := os.ReadFile(at(want.file))
		require.NoError(t, err)
		require.Equal(t, name, string(text))
		is, err := os.Lstat(at(want.file))
		require.NoError(t, err)
		require.Equal(t, want.mode, is.Mode(), name)
	}
	for _, link := range []string{"latest", "link", "next"} {
		is, err := os.Lstat(at(link))
		require.NoError(t, err)
		require.Equal(t, fs.ModeSymlink, is.Mode().Type(), link)
	}
	for _, folder := range []string{".", "runs"} {
		left, err := filepath.Glob(filepath.Join(dir, folder, ".terapush-*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
	require.EqualError(t, file.Write(dir, nil), "it is a folder")
	require.EqualError(t, file.Writable(at("no/where")), "making a file in its folder: no such file or directory")
}

// A regular file is never seen half written: whoever has opened the old one reads it to its end.
func TestWriteReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	require.NoError(t, file.Write(path, []byte("old")))
	before, err := os.Open(path)
	require.NoError(t, err)
	defer before.Close()
	require.NoError(t, file.Write(path, []byte("new")))
	var text bytes.Buffer
	_, err = text.ReadFrom(before)
	require.NoError(t, err)
	require.Equal(t, "old", text.String())
}

func TestWriteIntoWhatIsNoFile(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	read := make(chan string)
	go func() {
		text, err := os.ReadFile(fifo)
		if err != nil {
			text = []byte(err.Error())
		}
		read <- string(text)
	}()
	require.NoError(t, file.Writable(fifo), "its reader is not disturbed")
	require.NoError(t, file.Write(fifo, []byte("into the pipe")))
	require.Equal(t, "into the pipe", <-read)
	for path, mode := range map[string]fs.FileMode{fifo: fs.ModeNamedPipe, "/dev/null": fs.ModeDevice | fs.ModeCharDevice} {
		require.NoError(t, file.Write("/dev/null", []byte("x")))
		is, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, mode, is.Mode().Type())
	}
	require.ErrorIs(t, file.Write("/dev/full", []byte("x")), syscall.ENOSPC)
}

// A file that is this process's stdout keeps what was written to it before.
func TestWriteToStdout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(path)
	require.NoError(t, err)
	defer out.Close()
	defer func(was *os.File) { os.Stdout = was }(os.Stdout)
	os.Stdout = out
	_, err = out.WriteString("summary\n")
	require.NoError(t, err)
	require.NoError(t, file.Writable(path))
	require.NoError(t, file.Write(path, []byte("page\n")))
	_, err = out.WriteString("to go on\n")
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "summary\npage\nto go on\n", string(text))
}

// A file that has lost its name is not made again under it.
func TestWriteToADeletedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gone")
	open, err := os.Create(path)
	require.NoError(t, err)
	defer open.Close()
	require.NoError(t, os.Remove(path))
	link := "/proc/self/fd/" + strconv.Itoa(int(open.Fd()))
	require.NoError(t, file.Write(link, []byte("still here")))
	text, err := os.ReadFile(link)
	require.NoError(t, err)
	require.Equal(t, "still here", string(text))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, left)
}

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

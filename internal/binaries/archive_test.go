package binaries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const etcdEntry = "etcd-v3.6.8/etcd"

// tarball makes a .tar.gz of the headers; every file has the same content.
func tarball(t *testing.T, content []byte, headers ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	w := tar.NewWriter(zipped)
	for _, h := range headers {
		h.Mode = 0o755
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			writeAll(t, w, content)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func regular(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }

func TestExtractFile(t *testing.T) {
	content := []byte("the program")
	good := tarball(t, content, tar.Header{Name: "etcd-v3.6.8/", Typeflag: tar.TypeDir}, regular("etcd-v3.6.8/README.md"), regular(etcdEntry), regular("etcd-v3.6.8/etcdctl"))
	for _, tc := range []struct {
		name    string
		archive []byte
		want    string // "": it is extracted
	}{
		{"as released", good, ""},
		{"with a leading dot", tarball(t, content, regular("./"+etcdEntry)), ""},
		{"traversal before it", tarball(t, content, regular("../../etc/passwd"), regular(etcdEntry)), "points out of the archive"},
		{"traversal after it", tarball(t, content, regular(etcdEntry), regular("a/../../x")), "points out of the archive"},
		{"absolute", tarball(t, content, regular("/etc/passwd"), regular(etcdEntry)), "points out of the archive"},
		{"it is a link", tarball(t, content, tar.Header{Name: etcdEntry, Typeflag: tar.TypeSymlink, Linkname: "/bin/sh"}), "is not a file"},
		{"it is there twice", tarball(t, content, regular(etcdEntry), regular(etcdEntry)), "twice"},
		{"it is not there", tarball(t, content, regular("etcd-v3.6.8/etcdctl")), "no entry"},
		{"cut", good[:len(good)-20], "unexpected EOF"},
		{"not an archive", []byte("<html>no such file</html>"), "gzip: invalid header"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			archive, to := filepath.Join(dir, "a.tar.gz"), filepath.Join(dir, "out", "etcd")
			if err := errors.Join(os.WriteFile(archive, tc.archive, 0o600), os.Mkdir(filepath.Dir(to), 0o755)); err != nil {
				t.Fatal(err)
			}
			err := extractFile(archive, etcdEntry, to)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, content) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestDownloadEtcd(t *testing.T) {
	needLinux(t)
	name := "etcd-" + DefaultEtcd + "-" + platform()
	archive := tarball(t, script(Etcd, DefaultEtcd), regular(name+"/etcdctl"), regular(name+"/etcd"))
	evil := tarball(t, script(Etcd, DefaultEtcd), regular(name+"/etcd"), regular("../../../etcd"))
	for _, tc := range []struct {
		name string
		file []byte
		sums string
		want string // "": it is used
	}{
		{"good", archive, sha([]byte("x")) + "  etcd-" + DefaultEtcd + "-darwin-amd64.zip\n" + sha(archive) + "  " + name + ".tar.gz\n", ""},
		{"wrong checksum", archive, sha(evil) + "  " + name + ".tar.gz\n", "WRONG CHECKSUM"},
		{"not in the list", archive, sha(archive) + "  other.tar.gz\n", "no checksum for"},
		{"traversal", evil, sha(evil) + "  " + name + ".tar.gz\n", "points out of the archive"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStore(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/" + DefaultEtcd + "/" + name + ".tar.gz":
					writeAll(t, w, tc.file)
				case "/" + DefaultEtcd + "/SHA256SUMS":
					writeAll(t, w, []byte(tc.sums))
				default:
					http.NotFound(w, r)
				}
			}))
			b, err := s.Get(t.Context(), Etcd, DefaultEtcd)
			if tc.want != "" {
				if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				checkNothingLeft(t, s.Dir)
				return
			}
			if err != nil || b.Origin != OriginDownload {
				t.Fatalf("got %+v, %v", b, err)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(b.Path), "release.tar.gz")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the archive was kept: %v", err)
			}
		})
	}
}

package image

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestSameInputGivesSameDigest(t *testing.T) {
	t.Parallel()
	config := Config{Entrypoint: []string{"/program"}, Labels: map[string]string{"a": "1", "b": "2"}}
	add := []func(*Tree) error{file("/program", "code"), file("/etc/passwd", "nobody"), link("/lib", "usr/lib")}
	first := digest(t, mustBuild(t, newTree(t, add...), config))
	slices.Reverse(add)
	if second := digest(t, mustBuild(t, newTree(t, add...), config)); second != first {
		t.Errorf("digests differ: %s and, with the files added in another order, %s", first, second)
	}
}

func TestAnyDifferenceGivesAnotherDigest(t *testing.T) {
	t.Parallel()
	base := digest(t, mustBuild(t, newTree(t, file("/program", "code")), anyEntrypoint))
	withUser := anyEntrypoint
	withUser.User = "1000"
	later := anyEntrypoint
	later.Created = time.Unix(1, 0)
	for name, image := range map[string]v1.Image{
		"a byte":  mustBuild(t, newTree(t, file("/program", "Code")), anyEntrypoint),
		"a mode":  mustBuild(t, newTree(t, func(tree *Tree) error { return tree.AddFile("/program", 0o755, []byte("code")) }), anyEntrypoint),
		"a path":  mustBuild(t, newTree(t, file("/programs", "code")), anyEntrypoint),
		"a user":  mustBuild(t, newTree(t, file("/program", "code")), withUser),
		"a time":  mustBuild(t, newTree(t, file("/program", "code")), later),
		"a label": mustBuild(t, newTree(t, file("/program", "code")), Config{Entrypoint: anyEntrypoint.Entrypoint, Labels: map[string]string{"a": "1"}}),
	} {
		if digest(t, image) == base {
			t.Errorf("another %s gives the same digest", strings.TrimPrefix(name, "a "))
		}
	}
}

func TestFilesBearOneTimeAndNoOwner(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 5, 4, 3, 2, 1, 999, time.UTC)
	config := Config{Entrypoint: []string{"/program"}, Created: created}
	headers, _ := headers(t, mustBuild(t, newTree(t, file("/bin/program", "code"), link("/program", "bin/program")), config))
	for _, h := range headers {
		if !h.ModTime.Equal(created.Truncate(time.Second)) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s is of %s, owned by %d:%d (%q:%q)", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname)
		}
	}
}

func TestConfigurationAndItsDefaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config Config
		want   v1.ConfigFile
	}{
		"defaults": {
			config: anyEntrypoint,
			want: v1.ConfigFile{
				Architecture: runtime.GOARCH, OS: "linux", Created: v1.Time{Time: time.Unix(0, 0).UTC()},
				Config: v1.Config{Entrypoint: []string{"/program"}, User: "65532:65532", WorkingDir: "/"},
			},
		},
		"everything": {
			config: Config{
				Entrypoint: []string{"/program"}, Command: []string{"run"}, User: "1000:1000", Env: []string{"A=1"}, WorkingFolder: "/data",
				Labels: map[string]string{"org.opencontainers.image.title": "x"}, Architecture: "arm64", Created: time.Unix(5, 0),
			},
			want: v1.ConfigFile{
				Architecture: "arm64", OS: "linux", Created: v1.Time{Time: time.Unix(5, 0).UTC()},
				Config: v1.Config{
					Entrypoint: []string{"/program"}, Cmd: []string{"run"}, User: "1000:1000", Env: []string{"A=1"}, WorkingDir: "/data",
					Labels: map[string]string{"org.opencontainers.image.title": "x"},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mustBuild(t, newTree(t, file("/program", "code")), test.config).ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			got = got.DeepCopy()
			got.RootFS, got.History = v1.RootFS{}, nil // the layer's, see other tests
			if diff := cmp.Diff(test.want, *got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnImageNeedsAnEntrypoint(t *testing.T) {
	t.Parallel()
	if _, err := Build(NewTree(), Config{}); err == nil || !strings.Contains(err.Error(), "entrypoint") {
		t.Errorf("got error %v, want one about the entrypoint", err)
	}
}

func TestSourceDate(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Time{"": time.Unix(0, 0), "1700000000": time.Unix(1700000000, 0)} {
		if got, err := SourceDate(value); err != nil || !got.Equal(want) {
			t.Errorf("SourceDate(%q) = %v, %v; want %v", value, got, err, want)
		}
	}
	for _, value := range []string{"today", "-1", "1.5"} {
		if _, err := SourceDate(value); err == nil || !strings.Contains(err.Error(), value) {
			t.Errorf("SourceDate(%q): got error %v, want one that names the value", value, err)
		}
	}
}

// SPDX-License-Identifier: GPL-2.0-only

package image_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"guise/internal/image"
	"guise/internal/image/imagetest"
)

// folder is a $GUISE_LIBDIR with a holder and these images: names and extensions.
func folder(t *testing.T, images map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "guise-holder"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, extensions := range images {
		text := imagetest.Net
		if extensions != "" {
			text += "extension " + extensions + "\n"
		}
		if strings.Contains(extensions, "lia") {
			text += "congestion lia\n"
		}
		imagetest.Write(t, filepath.Join(dir, name), text)
	}
	t.Setenv("GUISE_LIBDIR", dir)
	t.Setenv("GUISE_KERNEL", "")
	return dir
}

func TestImageSaysWhatItHas(t *testing.T) {
	dir := folder(t, map[string]string{"guise-kernel": "", "guise-kernel-x": "lia mote"})
	got, err := image.Default()
	if err != nil || got.Linux != "6.12.1-guise" || !slices.Equal(got.Schedulers, []string{"default"}) ||
		!slices.Equal(got.Congestion, []string{"cubic", "bbr", "reno", "westwood"}) || len(got.Extensions) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	t.Setenv("GUISE_KERNEL", dir+"/guise-kernel-x")
	if got, err = image.Default(); err != nil || !slices.Equal(got.Extensions, []string{"lia", "mote"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestExtensionIsFoundWhateverTheImageIsCalled(t *testing.T) {
	folder(t, map[string]string{
		"guise-kernel": "", "guise-kernel-a": "lia lowrtt mote", "guise-kernel-b": "lia mote",
		"guise-kernel-lia.debug": "lia", "other": "lia",
	})
	for asked, want := range map[string]string{"lia": "guise-kernel-b", "lowrtt lia": "guise-kernel-a", "": "guise-kernel"} {
		if got, err := image.Choose(strings.Fields(asked)); err != nil || got.Name() != want {
			t.Errorf("%q: %+v, %v; want %s", asked, got, err, want)
		}
	}
	if got := image.Extensions(); !slices.Equal(got, []string{"lia", "lowrtt", "mote"}) {
		t.Error(got)
	}
	congestion := func(i *image.Image) []string { return i.Congestion }
	if got := image.Offering("lia", congestion); !slices.Equal(got, []string{"lia"}) {
		t.Error(got)
	}
	if got := image.Offering("pigeon", congestion); got != nil {
		t.Error(got)
	}
}

func TestMissingExtensionsAreNamed(t *testing.T) {
	dir := folder(t, map[string]string{"guise-kernel": "", "guise-kernel-lia": "lia", "guise-kernel-mote": "mote"})
	refused := func(asked string, parts ...string) {
		t.Helper()
		_, err := image.Choose(strings.Fields(asked))
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v; want something about %q", asked, err, part)
			}
		}
	}
	refused("lib", "extension lib;", "there are lia, mote", `make EXTENSIONS="lib"`)
	refused("lia mote", "together", `make EXTENSIONS="lia mote"`)
	t.Setenv("GUISE_KERNEL", dir+"/guise-kernel-mote")
	refused("lia", "$GUISE_KERNEL", "no extension lia", "there are mote")
	t.Setenv("GUISE_KERNEL", dir+"/guise-kernel")
	refused("lia", "there is none")
	t.Setenv("GUISE_KERNEL", dir+"/guise-holder")
	refused("lia", "cannot be read")
	t.Setenv("GUISE_KERNEL", dir+"/nothing")
	refused("lia", "no such file")
}

func FuzzDescription(f *testing.F) {
	f.Add("linux 6.12\ndefault x\ncongestion x y\n")
	f.Add("congestion\n\x00 \n")
	f.Fuzz(func(t *testing.T, text string) {
		path := t.TempDir() + "/image"
		imagetest.Write(t, path, text)
		got, err := image.Read(path)
		if err == nil && len(got.Congestion) > 0 && slices.Contains(got.Congestion, got.Default) && got.Congestion[0] != got.Default {
			t.Errorf("%q: the default is not the first of %q", text, got.Congestion)
		}
	})
}

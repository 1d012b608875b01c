// SPDX-License-Identifier: GPL-2.0-only

// Package image asks kernel images what they have, and chooses the one that a stack needs.
//
// An image says it itself: linux/build.sh writes a section .guise.description into it, from the
// sources of what was linked. Its lines are a word and what it is about (docs/extensions.md). What
// is not known here is passed over, so that an image may say more later.
//
// Images lie beside the holder, and are called guise-kernel or guise-kernel-ANYTHING. Only what
// one says counts, not its name. An image without a description, which another version of guise
// built, has none of what is asked for here, and is used as it is if nothing is.
package image

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"guise/internal/holder"
)

// Section is where an image says what it has.
const Section = ".guise.description"

// mostText is more than any description has.
const mostText = 1 << 16

// Image is a kernel image, and what it says of itself.
type Image struct {
	Path       string
	Linux      string   // its release
	Default    string   // the congestion control that sockets get
	Configs    []string // of linux/configs
	Extensions []string // of extensions/
	Congestion []string // congestion controls, with the default first
	Schedulers []string // of Multipath TCP
}

// Name is that of the file.
func (i *Image) Name() string { return filepath.Base(i.Path) }

// Has reports whether the image has all these extensions.
func (i *Image) Has(extensions []string) bool {
	return !slices.ContainsFunc(extensions, func(e string) bool { return !slices.Contains(i.Extensions, e) })
}

// errNone is that an image says nothing of itself.
var errNone = errors.New("it does not say what it has; build it anew (make)")

// Read asks an image. The image is returned with an error, too: with its path alone.
func Read(path string) (*Image, error) {
	image := &Image{Path: path}
	file, err := elf.Open(path)
	if err != nil {
		return image, fmt.Errorf("the kernel image %s cannot be read: %w", path, err)
	}
	defer file.Close()
	if machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]; file.Machine != machine {
		return image, fmt.Errorf("the kernel image %s is for another processor (%v)", path, file.Machine)
	}
	section := file.Section(Section)
	if section == nil || section.Size > mostText {
		return image, fmt.Errorf("the kernel image %s: %w", path, errNone)
	}
	text, err := section.Data()
	if err != nil {
		return image, fmt.Errorf("the kernel image %s cannot be read: %w", path, err)
	}
	image.parse(string(text))
	return image, nil
}

func (i *Image) parse(text string) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch rest := words[1:]; words[0] {
		case "linux":
			i.Linux = rest[0]
		case "default":
			i.Default = rest[0]
		case "config":
			i.Configs = append(i.Configs, rest...)
		case "extension":
			i.Extensions = append(i.Extensions, rest...)
		case "congestion":
			i.Congestion = append(i.Congestion, rest...)
		case "scheduler":
			i.Schedulers = append(i.Schedulers, rest...)
		}
	}
	slices.Sort(i.Congestion)
	if at := slices.Index(i.Congestion, i.Default); at > 0 {
		i.Congestion = slices.Insert(slices.Delete(i.Congestion, at, at+1), 0, i.Default)
	}
}

// All returns the images beside the holder that say what they have: guise-kernel first, then those
// with the fewest extensions.
func All() []*Image {
	program, err := holder.Find(holder.Program)
	if err != nil {
		return nil
	}
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(program), holder.Kernel+"*"))
	if err != nil {
		return nil
	}
	var all []*Image
	for _, path := range paths {
		name := filepath.Base(path)
		if name != holder.Kernel && !strings.HasPrefix(name, holder.Kernel+"-") || strings.HasSuffix(name, ".debug") {
			continue
		}
		if image, err := Read(path); err == nil {
			all = append(all, image)
		}
	}
	rank := func(i *Image) int {
		switch {
		case i.Name() == holder.Kernel:
			return -1
		case !slices.Equal(i.Configs, []string{"net"}): // for tests
			return 1000 + len(i.Extensions)
		}
		return len(i.Extensions)
	}
	slices.SortStableFunc(all, func(a, b *Image) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// Default returns the image that a stack gets if nothing is said: the one that $GUISE_KERNEL
// names, or guise-kernel.
func Default() (*Image, error) {
	if path := os.Getenv("GUISE_KERNEL"); path != "" {
		return Read(path)
	}
	path, err := holder.Find(holder.Kernel)
	if err != nil {
		return nil, err
	}
	return Read(path)
}

// Choose returns the image for a stack with these extensions.
func Choose(extensions []string) (*Image, error) {
	if len(extensions) == 0 {
		return Default()
	}
	if path := os.Getenv("GUISE_KERNEL"); path != "" {
		image, err := Read(path)
		if err == nil && !image.Has(extensions) {
			err = fmt.Errorf("the kernel image %s, which $GUISE_KERNEL names, has no extension %s; %s", path,
				strings.Join(lacking(image, extensions), " and no extension "), has(image.Extensions))
		}
		return image, err
	}
	all := All()
	var known []string
	for _, image := range all {
		if image.Has(extensions) {
			_, err := holder.Find(image.Name())
			return image, err
		}
		known = append(known, image.Extensions...)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	make := fmt.Sprintf("make EXTENSIONS=%q builds one, from extensions/, and make install installs it (docs/extensions.md)", strings.Join(extensions, " "))
	if missing := lacking(&Image{Extensions: known}, extensions); len(missing) > 0 {
		return nil, fmt.Errorf("no kernel image has the extension %s; %s; %s", strings.Join(missing, ", "), has(known), make)
	}
	return nil, fmt.Errorf("no kernel image has the extensions %s together; %s", strings.Join(extensions, ", "), make)
}

func lacking(image *Image, extensions []string) []string {
	return slices.DeleteFunc(slices.Clone(extensions), func(e string) bool { return slices.Contains(image.Extensions, e) })
}

func has(extensions []string) string {
	if len(extensions) == 0 {
		return "there is none"
	}
	return "there are " + strings.Join(extensions, ", ")
}

// Extensions returns those of all images beside the holder.
func Extensions() []string {
	var all []string
	for _, image := range All() {
		all = append(all, image.Extensions...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Offering returns the extensions of an image beside the holder that has what list returns and
// that the word is one of; nil: none has.
func Offering(word string, list func(*Image) []string) []string {
	for _, image := range All() {
		if len(image.Extensions) > 0 && slices.Contains(list(image), word) {
			if slices.Contains(image.Extensions, word) {
				return []string{word}
			}
			return image.Extensions
		}
	}
	return nil
}

// SPDX-License-Identifier: GPL-2.0-only

package config

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"guise/internal/suggest"
)

// Profiles are configs that are a part of guise: settings of stacks that papers measured.
// The first comment of each file says what it is and which paper has the figures.
//
//go:embed profiles/*.toml
var profiles embed.FS

// Profile is one of them.
type Profile struct {
	Name, About string
	Stack       *Stack
}

// Profiles returns all of them, by name.
func Profiles() []Profile {
	entries, err := fs.ReadDir(profiles, "profiles")
	if err != nil {
		panic(err) // they are part of this program
	}
	var all []Profile
	for _, e := range entries {
		text, err := fs.ReadFile(profiles, "profiles/"+e.Name())
		if err != nil {
			panic(err)
		}
		name := strings.TrimSuffix(e.Name(), ".toml")
		stack, err := Parse("profile "+name, text)
		if err != nil {
			panic(err)
		}
		all = append(all, Profile{name, about(string(text)), stack})
	}
	return all
}

// FindProfile returns the profile of that name.
func FindProfile(name string) (*Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == name {
			return &p, nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("unknown profile %q; %s", name, suggest.Hint(name, names))
}

// about returns the first comment of a file, without the license, in one line.
func about(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		comment = strings.TrimSpace(comment)
		switch {
		case strings.HasPrefix(comment, "SPDX-"):
		case ok && comment != "":
			lines = append(lines, comment)
		case len(lines) > 0:
			return strings.Join(lines, " ")
		}
	}
	return strings.Join(lines, " ")
}

// SPDX-License-Identifier: GPL-2.0-only

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"guise/internal/suggest"
)

// Mistake is an error in a config: it names the file, the line, the key and what is
// allowed.
type Mistake struct{ text string }

func (m Mistake) Error() string { return m.text }

func mistake(format string, args ...any) error { return Mistake{fmt.Sprintf(format, args...)} }

// largest is more bytes than any config has.
const largest = 256 << 10

// ReadFile reads a file, or standard input if the path is -. If the config has no name,
// the name of the file is taken.
func ReadFile(path string) (*Stack, error) {
	if path == "-" {
		text, err := io.ReadAll(io.LimitReader(os.Stdin, largest+1))
		if err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
		return Parse("standard input", text)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, mistake("cannot read %s: %v; expected the path of a config", path, errors.Unwrap(err))
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, largest+1))
	if err != nil {
		return nil, mistake("cannot read %s: %v; expected the path of a config", path, errors.Unwrap(err))
	}
	s, err := Parse(path, text)
	if err == nil && s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(path), ".toml")
	}
	return s, err
}

// Parse reads a config; file is its name in messages.
func Parse(file string, text []byte) (*Stack, error) {
	if len(text) > largest {
		return nil, mistake("%s: is longer than %d bytes, and so no config", file, largest)
	}
	s := &Stack{file: file}
	decoder := toml.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(s)
	s.lines = locate(text)
	if err != nil {
		return nil, s.explain(err)
	}
	if err := s.checkLists(Whole, ""); err != nil {
		return nil, err
	}
	if err := s.flatten("", s.Sysctl); err != nil {
		return nil, err
	}
	s.sortSysctls()
	return s, s.checkAllowed()
}

// checkLists refuses [link] where [[link]] is needed: the decoder accepts both.
func (s *Stack) checkLists(table reflect.Type, prefix string) error {
	for _, f := range Fields(table) {
		path := prefix + f.Key
		inner, list := f.Table()
		if inner == nil || !s.Says(path) {
			continue
		}
		if !list {
			if err := s.checkLists(inner, path+"."); err != nil {
				return err
			}
			continue
		}
		for at := range s.lines {
			if rest, below := strings.CutPrefix(at, path+"."); below && strings.Trim(rest[:1], "0123456789") != "" {
				return mistake("%s: expected %s", s.Where(path), f.Takes())
			}
		}
	}
	return nil
}

// explain turns the decoder's error into a sentence that helps the user.
func (s *Stack) explain(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		first := unknown.Errors[0]
		line, _ := first.Position()
		path := words(strings.Join(first.Key(), "."))
		for i := range path { // the first word that is unknown
			if _, beside, ok := find(path[:i+1]); !ok {
				return mistake("%s:%d: unknown key %s; %s", s.file, line, strings.Join(path[:i+1], "."), suggest.Hint(path[i], beside))
			}
		}
		return mistake("%s:%d: unknown key %s", s.file, line, strings.Join(path, "."))
	}
	var decode *toml.DecodeError
	if !errors.As(err, &decode) {
		return mistake("%s: %v", s.file, err)
	}
	line, _ := decode.Position()
	said := strings.TrimPrefix(decode.Error(), "toml: ")
	path := s.lines.pathAt(line)
	if field, _, ok := find(words(path)); ok && strings.Contains(said, "cannot") {
		return mistake("%s:%d: %s: expected %s%s", s.file, line, path, field.Takes(), field.shown())
	}
	return mistake("%s:%d: is no TOML here: %s", s.file, line, said)
}

// shown returns an example of the key in one line, if it has one.
func (f Field) shown() string {
	switch {
	case f.Example == "" || strings.Contains(f.Example, "\n"):
		return ""
	case strings.Contains(f.Example, " = "):
		return ", as in " + f.Example
	}
	return ", as in " + f.Key + " = " + f.Example
}

// flatten joins the names of sysctls that were written without quotes: TOML makes tables
// in tables of names with dots.
func (s *Stack) flatten(prefix string, table map[string]any) error {
	for key, value := range table {
		name := prefix + key
		switch value := value.(type) {
		case string:
			s.sysctls = append(s.sysctls, KeyValue{name, value})
		case int64:
			s.sysctls = append(s.sysctls, KeyValue{name, strconv.FormatInt(value, 10)})
		case map[string]any:
			if err := s.flatten(name+".", value); err != nil {
				return err
			}
		default:
			return mistake("%s: expected a text in quotes or a whole number, as in \"net.ipv4.tcp_sack\" = 0", s.Where("sysctl."+name))
		}
	}
	return nil
}

// sortSysctls sorts them as in the file, because some have to be set before others.
func (s *Stack) sortSysctls() {
	slices.SortFunc(s.sysctls, func(a, b KeyValue) int {
		if d := s.lines["sysctl."+a.Key] - s.lines["sysctl."+b.Key]; d != 0 {
			return d
		}
		return strings.Compare(a.Key, b.Key)
	})
}

// Where returns the place of a path such as link.0.mtu, as FILE:LINE: KEY.
func (s *Stack) Where(path string) string {
	for at := path; at != ""; {
		if line := s.lines[at]; line > 0 {
			return fmt.Sprintf("%s:%d: %s", s.file, line, path)
		}
		dot := strings.LastIndexByte(at, '.')
		at = at[:max(dot, 0)]
	}
	return fmt.Sprintf("%s: %s", s.file, path)
}

// Says reports whether the file has a key of that path.
func (s *Stack) Says(path string) bool { return s.lines[path] > 0 }

// checkAllowed refuses values that are not in their key's list of allowed values.
func (s *Stack) checkAllowed() error {
	for i, l := range s.Links {
		if err := s.oneOf(fmt.Sprintf("link.%d.kind", i), l.Kind); err != nil {
			return err
		}
	}
	for i, u := range s.Uplinks {
		if err := s.oneOf(fmt.Sprintf("uplink.%d.way", i), u.Way); err != nil {
			return err
		}
		for k, flag := range u.Endpoint {
			if err := s.oneOf(fmt.Sprintf("uplink.%d.endpoint.%d", i, k), flag); err != nil {
				return err
			}
		}
	}
	for i, e := range s.MPTCP.EndpointTables {
		for k, flag := range e.Flags {
			if err := s.oneOf(fmt.Sprintf("mptcp.endpoint.%d.flags.%d", i, k), flag); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Stack) oneOf(path, value string) error {
	field, _, _ := find(words(path))
	if value == "" && !s.Says(path) || slices.Contains(field.Allowed, value) {
		return nil
	}
	return mistake("%s: unknown value %q; %s", s.Where(path), value, suggest.Hint(value, field.Allowed))
}

// Under sets what the stack's own config does not set from a profile.
func (s *Stack) Under(profile *Stack) {
	if s.CC == "" {
		s.CC = profile.CC
	}
	if s.Netem == "" {
		s.Netem = profile.Netem
	}
	s.MPTCP.Enabled = s.MPTCP.Enabled || profile.MPTCP.Enabled
	own := map[string]bool{}
	for _, kv := range s.sysctls {
		own[kv.Key] = true
	}
	before := slices.DeleteFunc(slices.Clone(profile.sysctls), func(kv KeyValue) bool { return own[kv.Key] })
	s.sysctls = append(before, s.sysctls...)
}

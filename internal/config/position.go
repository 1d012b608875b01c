// SPDX-License-Identifier: GPL-2.0-only

package config

import (
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// positions are the lines of the keys of a file, by paths such as link.0.addresses.1 and
// sysctl.net.ipv4.tcp_sack.
type positions map[string]int

// locate reads the positions from a text that is valid TOML.
func locate(text []byte) positions {
	found, counts := positions{}, map[string]int{}
	var table []string
	var ends []int // of the lines
	for i, c := range text {
		if c == '\n' {
			ends = append(ends, i)
		}
	}
	p := unstable.Parser{}
	p.Reset(text)
	line := func(n *unstable.Node, otherwise int) int {
		if n.Raw.Length == 0 {
			return otherwise
		}
		// (The parser's own Shape counts from the beginning of the file each time.)
		return 1 + sort.SearchInts(ends, int(n.Raw.Offset))
	}
	// resolve adds, after the name of each list of tables, the number of its current table.
	resolve := func(keys []string) (path []string) {
		for _, key := range keys {
			path = append(path, key)
			if n, list := counts[strings.Join(path, ".")]; list {
				path = append(path, strconv.Itoa(n))
			}
		}
		return path
	}
	var value func(path []string, n *unstable.Node, at int)
	pair := func(prefix []string, n *unstable.Node, at int) {
		keys, first := parts(n)
		path := append(append([]string(nil), prefix...), keys...)
		at = line(first, at)
		found[strings.Join(path, ".")] = at
		value(path, n.Value(), at)
	}
	value = func(path []string, n *unstable.Node, at int) {
		i := 0
		for it := n.Children(); it.Next(); {
			switch child := it.Node(); n.Kind {
			case unstable.Array:
				inner := append(append([]string(nil), path...), strconv.Itoa(i))
				found[strings.Join(inner, ".")] = line(child, at)
				value(inner, child, line(child, at))
				i++
			case unstable.InlineTable:
				pair(path, child, at)
			}
		}
	}
	for p.NextExpression() {
		n := p.Expression()
		keys, first := parts(n)
		if n.Kind == unstable.KeyValue {
			pair(table, n, 0)
			continue
		}
		if n.Kind == unstable.ArrayTable {
			name := strings.Join(append(resolve(keys[:len(keys)-1]), keys[len(keys)-1]), ".")
			if _, again := counts[name]; again {
				counts[name]++
			} else {
				counts[name] = 0
			}
		}
		if n.Kind == unstable.Table || n.Kind == unstable.ArrayTable {
			table = resolve(keys)
			found[strings.Join(table, ".")] = line(first, 0)
		}
	}
	return found
}

// parts returns the words of a key, and the node of the first one.
func parts(n *unstable.Node) (keys []string, first *unstable.Node) {
	for it := n.Key(); it.Next(); {
		if first == nil {
			first = it.Node()
		}
		keys = append(keys, string(it.Node().Data))
	}
	return keys, first
}

// pathAt returns the last key on that line or before it.
func (p positions) pathAt(line int) (path string) {
	best := 0
	for candidate, at := range p {
		if at <= line && (at > best || at == best && len(candidate) > len(path)) {
			best, path = at, candidate
		}
	}
	return path
}

// words returns a path without the numbers in it.
func words(path string) (keys []string) {
	for _, part := range strings.Split(path, ".") {
		if _, err := strconv.Atoi(part); err != nil {
			keys = append(keys, part)
		}
	}
	return keys
}

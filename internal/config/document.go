// SPDX-License-Identifier: GPL-2.0-only

package config

import (
	"fmt"
	"reflect"
	"strings"
)

// section is a table of the config, with the header that begins it.
type section struct {
	header, title, doc string
	fields             []Field
}

// sections returns the tables, in the order in which they are first named.
func sections() []section {
	all := []section{{title: "The whole stack"}}
	var visit func(at int, table reflect.Type, prefix string)
	visit = func(at int, table reflect.Type, prefix string) {
		for _, f := range Fields(table) {
			inner, list := f.Table()
			header := prefix + f.Key
			switch {
			case inner != nil && list:
				header = "[[" + header + "]]"
			case inner != nil || f.Type.Kind() == reflect.Map:
				header = "[" + header + "]"
			default:
				all[at].fields = append(all[at].fields, f)
				continue
			}
			all = append(all, section{header: header, title: header, doc: f.Doc})
			if inner == nil {
				all[len(all)-1].fields = []Field{{Key: "\"KEY\"", Doc: f.Doc, Example: f.Example, Default: f.Default, Flag: f.Flag, Type: reflect.TypeFor[any]()}}
				continue
			}
			visit(len(all)-1, inner, prefix+f.Key+".")
		}
	}
	visit(0, Whole, "")
	return all
}

func (f Field) takes() string {
	if f.Type.Kind() == reflect.Interface {
		return "a text in quotes, or a whole number"
	}
	return f.Takes()
}

// line is the example as a line of a config.
func (f Field) line() string {
	if strings.Contains(f.Example, "\" = ") {
		return f.Example
	}
	return f.Key + " = " + f.Example
}

const introduction = "`guise up FILE` starts a named stack from a file in TOML. Everything may be left out: an empty file is a\n" +
	"stack on the best way out that the user may have. What the file says wrongly is named with its line,\n" +
	"the key, and what is allowed, before anything is done.\n"

const example = `memory = "512M"
cc = "bbr"
publish = ["8080:80"]

[sysctl]
"net.ipv4.tcp_sack" = 1

[[link]]
kind = "tap"
qdisc = "fq"
`

// Markdown is docs/config.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("<!-- Written by internal/config/generate from internal/config/config.go: change that. -->\n\n" +
		"# The config of a stack\n\n" + introduction + "\n```toml\n" + example + "```\n\n" +
		"[guise.schema.json](guise.schema.json) is the JSON schema, for editors that check TOML by one\n" +
		"(`#:schema PATH` in the first line). Where `guise run` has a flag for the same, it is named; both have\n" +
		"one meaning.\n")
	for _, s := range sections() {
		title := s.title
		if s.header != "" {
			title = "`" + s.header + "`"
		}
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		if s.doc != "" && s.header != "" {
			b.WriteString(s.doc + "\n\n")
		}
		for _, f := range s.fields {
			fmt.Fprintf(&b, "### `%s`\n\n", f.Key)
			if f.Doc != s.doc {
				b.WriteString(f.Doc + "\n\n")
			}
			fmt.Fprintf(&b, "- Takes %s.\n", f.takes())
			if f.Default != "" {
				fmt.Fprintf(&b, "- Left out: %s.\n", f.Default)
			}
			if f.Flag != "" {
				fmt.Fprintf(&b, "- Flag of `guise run`: `--%s`.\n", f.Flag)
			}
			fmt.Fprintf(&b, "\n```toml\n%s\n```\n\n", f.line())
		}
	}
	b.WriteString("\n## Profiles\n\nSettings that papers measured; `guise profiles` lists them.\n")
	for _, p := range Profiles() {
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", p.Name, p.About)
	}
	return strings.ReplaceAll(b.String(), "\n\n\n", "\n\n")
}

// Manual is docs/guise-config.5.
func Manual() string {
	var b strings.Builder
	b.WriteString(".\\\" SPDX-License-Identifier: GPL-2.0-only\n" +
		".\\\" Written by internal/config/generate from internal/config/config.go: change that.\n" +
		".TH GUISE-CONFIG 5 \"\" \"guise 0.1.0\" \"File Formats\"\n" +
		".SH NAME\nguise-config \\- the config of a stack of guise\n" +
		".SH DESCRIPTION\n" + roff(strings.ReplaceAll(introduction, "`", "")) +
		".SH KEYS\n")
	for _, s := range sections() {
		fmt.Fprintf(&b, ".SS %s\n", roff(s.title))
		if s.doc != "" && s.header != "" {
			b.WriteString(roff(s.doc) + "\n")
		}
		for _, f := range s.fields {
			fmt.Fprintf(&b, ".TP\n.B %s\n", roff(f.Key))
			if f.Doc != s.doc {
				b.WriteString(roff(f.Doc) + "\n")
			}
			fmt.Fprintf(&b, "Takes %s.\n", roff(f.takes()))
			if f.Default != "" {
				fmt.Fprintf(&b, "Left out: %s.\n", roff(f.Default))
			}
			fmt.Fprintf(&b, ".IP\n.EX\n%s\n.EE\n", roff(f.line()))
		}
	}
	b.WriteString(".SH PROFILES\n")
	for _, p := range Profiles() {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(p.Name), roff(p.About))
	}
	b.WriteString(".SH EXAMPLES\n.EX\n" + roff(example) + ".EE\n.SH SEE ALSO\n.BR guise (1)\n")
	return b.String()
}

func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, `"`, `\(dq`).Replace(text)
	return strings.ReplaceAll(text, "\n.", "\n\\&.")
}

// Documents are the generated files of docs/, by name.
func Documents() map[string]string {
	return map[string]string{
		"config.md":         Markdown(),
		"guise-config.5":    Manual(),
		"guise.schema.json": Schema(),
	}
}

// SPDX-License-Identifier: GPL-2.0-only

// Package plain makes text that another user may have written fit to be printed. A terminal
// obeys some characters: they could hide or forge lines, or type for the user.
package plain

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns text as it is if all of it is printed, and quoted as Go does it otherwise.
func Text(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, obeyed) {
		return text
	}
	return strconv.Quote(text)
}

// Lines is Text for several lines: what is not printed is escaped, and lines stay lines.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if plain := Text(strings.ReplaceAll(line, "\t", " ")); plain != strings.ReplaceAll(line, "\t", " ") {
			lines[i] = plain
		}
	}
	return strings.Join(lines, "\n")
}

var bare = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// Words returns a command as a shell reads it.
func Words(command ...string) string {
	for i, word := range command {
		if !bare.MatchString(word) {
			command[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(command, " ")
}

// JSON returns a JSON text with such characters written as \u and four digits, which is the same
// text.
func JSON(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || !obeyed(r):
			out.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&out, "\\u%04x", unit)
			}
		}
	}
	return out.String()
}

func obeyed(r rune) bool { return !unicode.IsPrint(r) }

// SPDX-License-Identifier: GPL-2.0-only

// Package plan turns what a user asked for into the plan: the text that tells
// guise-holder which stack to build (docs/plan.md).
//
// Everything that a user can write is checked here, before anything on the host is
// changed. An error names the thing and what would be valid. Some things only the
// stack knows: whether it has a sysctl of that name, for example. These the holder
// checks, and its answer has the number of the plan's line. So each line is stored
// with what the user wrote to cause it.
package plan

import (
	"fmt"
	"strings"
	"unicode"
)

// Line is one directive of a plan.
type Line struct {
	Text string
	// Origin is what the user wrote that caused this line ("--netem delay 1ms"),
	// or "" if guise added it by itself.
	Origin string
}

// Plan is the text that a holder reads, line by line.
type Plan struct {
	Lines []Line
}

func (p *Plan) add(origin, format string, args ...any) {
	p.Lines = append(p.Lines, Line{Text: fmt.Sprintf(format, args...), Origin: origin})
}

// Text returns the plan as the holder reads it.
func (p *Plan) Text() string {
	var b strings.Builder
	for _, l := range p.Lines {
		b.WriteString(l.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

// Line returns the directive of that number, counted from 1 as in the holder.
func (p *Plan) Line(number int) (Line, bool) {
	if number < 1 || number > len(p.Lines) {
		return Line{}, false
	}
	return p.Lines[number-1], true
}

// Undo is what the holder runs when its last member has left:
// `Program undo Journal`.
type Undo struct {
	Program, Journal string
}

// NewUndo refuses paths with blanks, which separate the words of a plan.
func NewUndo(program, journal string) (*Undo, error) {
	if err := checkPaths(program, journal); err != nil {
		return nil, err
	}
	return &Undo{program, journal}, nil
}

func checkPaths(paths ...string) error {
	for _, path := range paths {
		if strings.ContainsFunc(path, unicode.IsSpace) || oneLine(path) != nil {
			return fmt.Errorf("%q contains blanks, which a plan cannot hold; move it to another directory", path)
		}
	}
	return nil
}

// addHead begins a plan. The boot of the stack has a line of its own: otherwise a
// failed boot would be reported for the line after it.
func (p *Plan) addHead(name string, memory uint64, undo *Undo, more ...string) {
	p.add("", "name %s", name)
	p.add("", "memory %s", formatMemory(memory))
	if undo != nil {
		p.add("", "undo %s %s", undo.Program, undo.Journal)
	}
	for _, line := range more {
		p.add("", "%s", line)
	}
	p.add("", "boot")
}

// oneLine refuses text with control characters, which could end the line of a plan.
func oneLine(text string) error {
	for _, r := range text {
		if unicode.IsControl(r) {
			return fmt.Errorf("contains the control character %q", r)
		}
	}
	return nil
}

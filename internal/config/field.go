// SPDX-License-Identifier: GPL-2.0-only

package config

import (
	"fmt"
	"reflect"
	"strings"

	"guise/internal/plan"
)

// Field is one key of a table, from the tags of its struct.
type Field struct {
	Key, Doc, Example, Default, Flag string

	Allowed []string     // nil: any
	Type    reflect.Type // a key that may be missing has a pointer, which is left out here
}

// fromKinds replaces the words in braces of a tag by those of the list of link kinds.
var fromKinds = func() *strings.Replacer {
	var names, meanings, others, more []string
	usual := plan.Kinds[0].MTU
	for _, k := range plan.Kinds {
		names = append(names, k.Name)
		meanings = append(meanings, k.Meaning)
		if k.MTU != usual {
			others = append(others, fmt.Sprintf("%d with %s", k.MTU, k.Name))
		}
		if most := plan.Kinds[0].MTUMost; k.MTUMost != most {
			more = append(more, fmt.Sprintf(" (%d with %s)", k.MTUMost, k.Name))
		}
	}
	limits := fmt.Sprintf("%d to %d", plan.MTULeast, plan.Kinds[0].MTUMost) + strings.Join(more, "")
	return strings.NewReplacer("{kinds}", strings.Join(names, "|"), "{meanings of kinds}", strings.Join(meanings, ", "),
		"{limits of MTUs}", limits, "{MTUs of kinds}", strings.Join(append([]string{fmt.Sprint(usual)}, others...), ", "))
}()

// Fields returns the keys of a table, in their order.
func Fields(table reflect.Type) (fields []Field) {
	for i := range table.NumField() {
		f := table.Field(i)
		key, ok := f.Tag.Lookup("toml")
		if !ok {
			continue
		}
		field := Field{Key: key, Doc: fromKinds.Replace(f.Tag.Get("doc")), Example: f.Tag.Get("example"),
			Default: fromKinds.Replace(f.Tag.Get("default")), Flag: f.Tag.Get("flag"), Type: f.Type}
		if field.Type.Kind() == reflect.Pointer {
			field.Type = field.Type.Elem()
		}
		if allowed := fromKinds.Replace(f.Tag.Get("allowed")); allowed != "" {
			field.Allowed = strings.Split(allowed, "|")
		}
		fields = append(fields, field)
	}
	return fields
}

// Whole is the type of a whole file.
var Whole = reflect.TypeFor[Stack]()

// Table is the struct behind a key that is a table, or a list of tables.
func (f Field) Table() (table reflect.Type, list bool) {
	t := f.Type
	if t.Kind() == reflect.Slice {
		t, list = t.Elem(), true
	}
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	return t, list
}

// Takes says in words which values the key takes.
func (f Field) Takes() string {
	if table, list := f.Table(); table != nil && list {
		return "a list of tables, each begun by [[" + f.Key + "]]"
	} else if table != nil {
		return "a table, begun by [" + f.Key + "]"
	}
	words := map[reflect.Kind]string{
		reflect.String: "a text in quotes",
		reflect.Int:    "a whole number",
		reflect.Bool:   "true or false",
		reflect.Slice:  "a list of texts in quotes",
		reflect.Map:    "a table of texts and whole numbers, begun by [" + f.Key + "]",
	}[f.Type.Kind()]
	if f.Allowed == nil {
		return words
	}
	choice := strings.Join(f.Allowed, ", ")
	if f.Type.Kind() == reflect.Slice {
		return "a list of any of " + choice
	}
	return "one of " + choice
}

// find returns the key that a path such as link.0.mtu names, and all keys of its table.
func find(path []string) (field Field, beside []string, ok bool) {
	table := Whole
	for i, part := range path {
		beside, ok = nil, false
		for _, f := range Fields(table) {
			beside = append(beside, f.Key)
			if f.Key == part {
				field, ok = f, true
			}
		}
		if !ok {
			return Field{}, beside, false
		}
		inner, _ := field.Table()
		if inner == nil {
			return field, beside, i == len(path)-1 || field.Type.Kind() == reflect.Map
		}
		table = inner
	}
	return field, beside, ok
}

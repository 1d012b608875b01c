// SPDX-License-Identifier: GPL-2.0-only

package config

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Schema is docs/guise.schema.json.
func Schema() string {
	whole := tableSchema(Whole)
	whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	whole["title"] = "The config of a stack of guise"
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(whole); err != nil {
		panic(err) // cannot happen: it has only texts, numbers and maps
	}
	return b.String()
}

func tableSchema(table reflect.Type) map[string]any {
	properties := map[string]any{}
	for _, f := range Fields(table) {
		properties[f.Key] = f.schema()
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func (f Field) schema() map[string]any {
	description := f.Doc
	if f.Default != "" {
		description += " Left out: " + f.Default + "."
	}
	value := map[string]any{}
	inner, list := f.Table()
	switch {
	case inner != nil && list:
		value = map[string]any{"type": "array", "items": tableSchema(inner)}
	case inner != nil:
		value = tableSchema(inner)
	default:
		switch f.Type.Kind() {
		case reflect.String:
			value["type"] = "string"
		case reflect.Int:
			value["type"] = "integer"
		case reflect.Bool:
			value["type"] = "boolean"
		case reflect.Slice:
			items := map[string]any{"type": "string"}
			if f.Allowed != nil {
				items["enum"] = f.Allowed
			}
			value = map[string]any{"type": "array", "items": items}
		case reflect.Map: // a key without quotes that has a dot is a table in TOML
			value = map[string]any{"type": "object", "additionalProperties": map[string]any{"type": []string{"string", "integer", "object"}}}
		}
		if f.Allowed != nil && f.Type.Kind() == reflect.String {
			value["enum"] = f.Allowed
		}
	}
	value["description"] = description
	return value
}

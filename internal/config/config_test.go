// SPDX-License-Identifier: GPL-2.0-only

package config

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
)

func TestWholeFile(t *testing.T) {
	s, err := Parse("web.toml", []byte(`
name = "web"
memory = "64M"
localhost = false
dns = ["192.0.2.53", "2001:db8::53"]
[sysctl]
"net.ipv4.tcp_sack" = 0
net.ipv4.tcp_rmem = "4096 87380 110208"
"net.core.somaxconn" = 7
[mptcp]
enabled = true
subflows = 2
[[mptcp.endpoint]]
address = "192.0.2.2"
link = "wan0"
flags = ["subflow", "backup"]
[[link]]
name = "wan0"
addresses = ["192.0.2.2/24"]
[[link]]
kind = "none"
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []KeyValue{{"net.ipv4.tcp_sack", "0"}, {"net.ipv4.tcp_rmem", "4096 87380 110208"}, {"net.core.somaxconn", "7"}}
	if !reflect.DeepEqual(s.Sysctls(), want) {
		t.Errorf("sysctls %v, want %v: the file's order", s.Sysctls(), want)
	}
	if s.Name != "web" || *s.Localhost || len(s.DNS) != 2 || !s.MPTCP.Enabled || *s.MPTCP.Subflows != 2 || s.MPTCP.AcceptAddAddr != nil {
		t.Errorf("got %+v", s)
	}
	for path, line := range map[string]string{
		"sysctl.net.ipv4.tcp_rmem": "8", "dns.1": "5", "mptcp.subflows": "12", "mptcp.endpoint.0.flags.1": "16",
		"link.0.addresses.0": "19", "link.1.kind": "21", "link.1.mtu": "20",
	} {
		if got := s.Where(path); got != "web.toml:"+line+": "+path {
			t.Errorf("%s is said to be at %q, want line %s", path, got, line)
		}
	}
}

func TestMistakesAreNamedWithLineKeyAndWhatIsAllowed(t *testing.T) {
	for text, parts := range map[string][]string{
		"\nmemry = '64M'":                        {"f:2:", "unknown key memry", "memory"},
		"[[link]]\nmtuu = 3":                     {"f:2:", "link.mtuu", "mtu"},
		"[mptcp]\n[[mptcp.endpoint]]\nflag = []": {"f:3:", "mptcp.endpoint.flag", "flags"},
		"[nosuch]\nx = 1":                        {"f:1:", "nosuch"},
		"memory = 64":                            {"f:1:", "memory", "a text in quotes", `memory = "512M"`},
		"[[link]]\nmtu = '1400'":                 {"f:2:", "link.0.mtu", "a whole number", "mtu = 1400"},
		"localhost = 'yes'":                      {"f:1:", "localhost", "true or false"},
		"dns = '192.0.2.53'":                     {"f:1:", "dns", "a list of texts in quotes"},
		"dns = [53]":                             {"f:1:", "dns", "a list of texts in quotes"},
		"link = 3":                               {"f:1:", "link", "[[link]]"},
		"[link]\nmtu = 3":                        {"f:1:", "link", "[[link]]"},
		"[[link]]\nkind = 'vde'":                 {"f:2:", "link.0.kind", "vde", "passt"},
		"[[link]]\nkind = ''":                    {"f:2:", "link.0.kind", "passt"},
		"[[mptcp.endpoint]]\nflags = ['a']":      {"f:2:", "mptcp.endpoint.0.flags.0", "fullmesh"},
		"[sysctl]\n'net.ipv4.tcp_sack' = true":   {"f:2:", "sysctl.net.ipv4.tcp_sack", "a whole number"},
		"[sysctl]\nnet.ipv4.tcp_sack = 1.5":      {"f:2:", "sysctl.net.ipv4.tcp_sack", "a whole number"},
		"memory = ":                              {"f:1:", "no TOML"},
		"memory = '1M'\nmemory = '2M'":           {"f:2:", "memory"},
		"\x00":                                   {"f:1:", "no TOML"},
		strings.Repeat("# nothing\n", largest/9): {"f:", "longer than"},
	} {
		_, err := Parse("f", []byte(text))
		if err == nil {
			t.Errorf("%.40q was taken", text)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%.40q: %v does not name %q", text, err, part)
			}
		}
		if _, ok := err.(Mistake); !ok || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %#v is no sentence about a mistake", text, err)
		}
	}
}

// The parser counts lines from the beginning for each key; a file of keys took half a minute.
func TestLinesOfALongFileAreFoundInTimeThatGrowsWithItsLength(t *testing.T) {
	read := func(links int) time.Duration {
		text := []byte(strings.Repeat("[[link]]\n", links))
		start := time.Now()
		if found := locate(text); found[fmt.Sprintf("link.%d", links-1)] != links {
			t.Errorf("the last of %d links is not where it is", links)
		}
		return time.Since(start)
	}
	// 32 times the length took 1000 times as long.
	if short, long := read(800), read(25600); long > 200*short+time.Second {
		t.Errorf("800 links take %v, and 25600 take %v", short, long)
	}
}

func TestFileHasItsNameAndOneThatIsNotThereIsNamed(t *testing.T) {
	path := t.TempDir() + "/web.toml"
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := ReadFile(path); err != nil || s.Name != "web" {
		t.Errorf("%v %+v", err, s)
	}
	if _, err := ReadFile(t.TempDir()); err == nil || !strings.Contains(err.Error(), "path of a config") {
		t.Error(err)
	}
}

// The values are those of table 2 of the paper that measured both.
func TestProfilesHaveThePapersReceiveBuffers(t *testing.T) {
	for name, most := range map[string]string{"android-2.1": "110208", "android-2.1-tuned": "1966080", "ubuntu-9.10": "1966080"} {
		p, err := FindProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := []KeyValue{{"net.ipv4.tcp_rmem", "4096 87380 " + most}}; !reflect.DeepEqual(p.Stack.Sysctls(), want) || p.Stack.CC != "cubic" {
			t.Errorf("%s: %+v", name, p.Stack)
		}
		if !strings.Contains(p.About, "Miki") || strings.Contains(p.About, "SPDX") {
			t.Errorf("%s is about %q", name, p.About)
		}
	}
	if _, err := FindProfile("android-2.2"); err == nil || !strings.Contains(err.Error(), "android-2.1") {
		t.Error(err)
	}
}

func TestProfileLiesUnderWhatAFileSays(t *testing.T) {
	p, err := FindProfile("android-2.1")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("f", []byte("cc = 'reno'\n[sysctl]\n'net.ipv4.tcp_rmem' = '4096 5000 6000'\n'net.ipv4.tcp_sack' = 0"))
	if err != nil {
		t.Fatal(err)
	}
	s.Under(p.Stack)
	if want := []KeyValue{{"net.ipv4.tcp_rmem", "4096 5000 6000"}, {"net.ipv4.tcp_sack", "0"}}; s.CC != "reno" || !reflect.DeepEqual(s.Sysctls(), want) {
		t.Errorf("cc %s, sysctls %v", s.CC, s.Sysctls())
	}
	empty := &Stack{}
	empty.Under(p.Stack)
	if empty.CC != "cubic" || len(empty.Sysctls()) != 1 {
		t.Errorf("got %+v", empty)
	}
}

func TestDocumentsAreThoseOfTheStructs(t *testing.T) {
	for name, want := range Documents() {
		got, err := os.ReadFile("../../docs/" + name)
		if err != nil || string(got) != want {
			t.Errorf("docs/%s is stale (%v); `make/go generate ./internal/config` writes it", name, err)
		}
	}
}

// every calls f with each key that is no table.
func every(t *testing.T, f func(header string, field Field)) {
	t.Helper()
	for _, s := range sections() {
		for _, field := range s.fields {
			f(s.header, field)
		}
	}
}

func TestEveryKeyIsDocumentedAndItsExampleIsRight(t *testing.T) {
	every(t, func(header string, field Field) {
		if field.Doc == "" || field.Example == "" || field.Default == "" {
			t.Errorf("%s%s: a tag is missing: %+v", header, field.Key, field)
		}
		text := header + "\n" + field.line()
		if _, err := Parse("example", []byte(text)); err != nil {
			t.Errorf("%v", err)
		}
		var tree map[string]any
		if err := toml.Unmarshal([]byte(text), &tree); err != nil {
			t.Fatal(err)
		}
		if problem := fits(tree, schema(t)); problem != "" {
			t.Errorf("the schema does not take %q: %s", text, problem)
		}
	})
	if _, err := Parse("example", []byte(example)); err != nil {
		t.Error(err)
	}
}

func schema(t *testing.T) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal([]byte(Schema()), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// fits is what is wrong with a value by a schema of the kind that Schema writes; "": nothing.
func fits(value any, schema map[string]any) string {
	kind := map[reflect.Kind]string{reflect.String: "string", reflect.Int64: "integer", reflect.Bool: "boolean",
		reflect.Map: "object", reflect.Slice: "array"}[reflect.ValueOf(value).Kind()]
	kinds, several := schema["type"].([]any)
	if !several {
		kinds = []any{schema["type"]}
	}
	good := false
	for _, k := range kinds {
		good = good || k == kind
	}
	if !good {
		return kind + " is no " + reflect.ValueOf(schema["type"]).String()
	}
	if allowed, ok := schema["enum"].([]any); ok {
		found := false
		for _, a := range allowed {
			found = found || a == value
		}
		if !found {
			return value.(string) + " is not in the list"
		}
	}
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if problem := fits(item, schema["items"].(map[string]any)); problem != "" {
				return problem
			}
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for key, inner := range value {
			of, known := properties[key].(map[string]any)
			if more, ok := schema["additionalProperties"].(map[string]any); !known && ok {
				of, known = more, true
			}
			if !known {
				return "unknown " + key
			}
			if problem := fits(inner, of); problem != "" {
				return key + ": " + problem
			}
		}
	}
	return ""
}

func TestSchemaRefusesWhatTheReaderRefuses(t *testing.T) {
	for _, text := range []string{"memry = '1M'", "memory = 1", "[[link]]\nkind = 'vde'", "[[link]]\nmtu = 'x'", "dns = [1]", "[mptcp]\nenabled = 1"} {
		var tree map[string]any
		if err := toml.Unmarshal([]byte(text), &tree); err != nil {
			t.Fatal(err)
		}
		if fits(tree, schema(t)) == "" {
			t.Errorf("the schema takes %q", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("[[mptcp.endpoint]]\n[sysctl]\na.b.c = 1\nx = {y = [1, {z = 2}]}")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("fuzz", []byte(text))
		if err == nil && s == nil {
			t.Error("neither a config nor a mistake")
		}
	})
}

// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/plain"
)

// told asks a holder that answers so for its connections.
func told(t *testing.T, answer func(request string) string) ([]Connection, error) {
	t.Helper()
	dir := folderOf(t, stranger)
	answersBy(t, dir, "7.sock", stranger, answer)
	stack, err := FindStack("7")
	if err != nil {
		t.Fatal(err)
	}
	c, err := stack.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Connections([]int{os.Getpid()})
}

func TestNothingThatATerminalObeysIsInConnections(t *testing.T) {
	connections, err := told(t, func(string) string {
		return `{"from":0,"connections":[{"protocol":"\u001b[2J","state":"x\ny","interface":"\u001b]0;x\u0007",` +
			`"local":"[fe80::1%\u001b[2J]:80","remote":"[::ffff:10.0.0.1]:443","cookie":1}, ` +
			`{"protocol":"` + strings.Repeat("long", 5000) + `","cookie":2}]}`
	})
	if err != nil || len(connections) != 2 {
		t.Fatal(connections, err)
	}
	for _, word := range []string{connections[0].Protocol, connections[0].State, connections[0].Interface,
		connections[0].Local.String(), connections[0].Remote.String()} {
		if plain.Text(word) != word {
			t.Errorf("%q", word)
		}
	}
	if end := connections[0].Local.String(); end != "[fe80::1]:80" {
		t.Error(end)
	}
	if end := connections[0].Remote.String(); end != "10.0.0.1:443" {
		t.Error(end)
	}
	if len(connections[1].Protocol) > longestWord {
		t.Errorf("a protocol of %d letters", len(connections[1].Protocol))
	}
}

func TestListsThatMakeNoSenseAreRefused(t *testing.T) {
	for what, text := range map[string]string{
		"no JSON":                  "\x1b[2J",
		"an address that is none":  `{"from":0,"connections":[{"local":"\u001b[2J:80"}]}`,
		"no progress":              `{"from":0,"connections":[],"next":0}`,
		"a step back":              `{"from":5,"connections":[{}],"next":1}`,
		"a step too far":           `{"from":0,"connections":[{}],"next":2}`,
		"a page that comes twice":  `{"from":0,"connections":[{}],"next":1}`,
		"a number that is none":    `{"from":0,"connections":[],"next":-1}`,
		"a page that is too large": `{"from":0,"connections":[` + strings.Repeat(" ", 70000) + `]}`,
		"a refusal":                "error \x1b[2J",
		"nothing":                  "",
	} {
		t.Run(what, func(t *testing.T) {
			connections, err := told(t, func(string) string { return text })
			if err == nil || plain.Text(err.Error()) != err.Error() {
				t.Errorf("%v, %v", connections, err)
			}
		})
	}
}

// endless is a holder whose list has no end: its pages follow each other as they should.
func endless(rows int, row string) func(request string) string {
	cookie := 0
	return func(request string) string {
		var from int
		fmt.Sscanf(request, "connections %d", &from)
		var page strings.Builder
		fmt.Fprintf(&page, `{"from":%d,"connections":[`, from)
		for i := range rows {
			if i > 0 {
				page.WriteByte(',')
			}
			cookie++
			fmt.Fprintf(&page, `{"cookie":%d,%s}`, cookie, row)
		}
		fmt.Fprintf(&page, `],"next":%d}`, from+rows)
		return page.String()
	}
}

func TestAListWithoutAnEndIsGivenUp(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, err := told(t, endless(1000, `"state":"established"`))
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 262144 connections") {
		t.Error(err)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<30 {
		t.Errorf("%d bytes", grown)
	}
}

func TestLongWordsOfManyConnectionsAreNotKept(t *testing.T) {
	var rows []row
	for i := range 1000 {
		r := row{}
		if err := json.Unmarshal(fmt.Appendf(nil, `{"cookie":%d,"interface":%q}`, i, strings.Repeat("x", 60000)), &r); err != nil {
			t.Fatal(err)
		}
		r.makePlain()
		rows = append(rows, r)
	}
	for _, c := range join(rows) {
		if len(c.Interface) > longestWord {
			t.Fatalf("an interface of %d letters", len(c.Interface))
		}
	}
}

func TestAListThatComesTooSlowlyIsGivenUp(t *testing.T) {
	dir := folderOf(t, stranger)
	answersBy(t, dir, "7.sock", stranger, endless(1, `"state":"established"`))
	stack, err := FindStack("7")
	if err != nil {
		t.Fatal(err)
	}
	c, err := stack.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.rows(time.Now()); !errors.Is(err, ErrTime) {
		t.Error(err)
	}
}

func rowsOf(t *testing.T, text string) (rows []row) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestSubflowsComeToTheirConnection(t *testing.T) {
	connections := join(rowsOf(t, `[
		{"protocol":"tcp","local":"10.0.0.1:1","subflow_of":{"token":7},"bytes":{"sent":1}},
		{"protocol":"mptcp","local":"10.0.0.1:1","token":7},
		{"protocol":"tcp","local":"10.0.0.1:2"},
		{"protocol":"tcp","local":"10.0.1.1:3","subflow_of":{"token":7,"backup":true,"local_id":2},"bytes":{"sent":2,"received":5}},
		{"protocol":"mptcp","local":"10.0.0.1:4","token":8,"bytes":{"sent":9}}]`))
	if len(connections) != 3 {
		t.Fatal(connections)
	}
	whole := connections[0]
	if len(whole.Subflows) != 2 || whole.Subflows[0].Backup || !whole.Subflows[1].Backup || whole.Subflows[1].LocalID != 2 {
		t.Errorf("%+v", whole)
	}
	if whole.Bytes == nil || whole.Bytes.Sent != 3 || whole.Bytes.Received != 5 {
		t.Errorf("%+v", whole.Bytes)
	}
	if connections[1].Protocol != "tcp" || connections[1].Bytes != nil || connections[2].Bytes.Sent != 9 {
		t.Errorf("%+v", connections)
	}
}

func TestSubflowsWhoseConnectionIsNotListedAreOne(t *testing.T) {
	connections := join(rowsOf(t, `[
		{"protocol":"tcp","local":"10.0.0.1:1","subflow_of":{"token":7,"fallback":true}},
		{"protocol":"tcp","local":"10.0.0.1:2","subflow_of":{"token":0,"fallback":true}},
		{"protocol":"tcp","local":"10.0.0.1:3","subflow_of":{"token":9}},
		{"protocol":"tcp","local":"10.0.1.1:3","subflow_of":{"token":9}}]`))
	if len(connections) != 3 {
		t.Fatalf("%+v", connections)
	}
	for i, c := range connections {
		if c.Protocol != mptcp || c.Fallback != (i < 2) || len(c.Subflows) != 1+i/2 {
			t.Errorf("%+v", c)
		}
	}
}

func TestAConnectionOfFarTooManySubflowsIsCut(t *testing.T) {
	var rows []row
	for range 1000 {
		rows = append(rows, rowsOf(t, `[{"subflow_of":{"token":9}}]`)...)
	}
	if connections := join(rows); len(connections) != 1 || len(connections[0].Subflows) != mostSubflows {
		t.Errorf("%d", len(connections))
	}
}

func TestWhoHasAConnectionIsFoundByItsNumber(t *testing.T) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	connections := []Connection{{inode: uint32(st.Ino)}, {inode: 0}, {inode: uint32(st.Ino) + 1<<30}}
	name(connections, []int{os.Getpid(), -1, 1 << 30})
	if got := connections[0].PIDs; len(got) != 1 || got[0] != os.Getpid() {
		t.Error(got)
	}
	for _, c := range connections[1:] {
		if c.PIDs == nil || len(c.PIDs) > 0 {
			t.Error(c.PIDs)
		}
	}
}

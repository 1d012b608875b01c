// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhyTracingIsRefusedIsSaid(t *testing.T) {
	for _, c := range []struct {
		refused       unix.Errno
		tracer, scope string
		status, part  string
	}{
		{0, "", "", OK, "are traced by its holder"},
		{0, "", "0", OK, "guise detach PID"},
		{0, "", "1", OK, "allow its holder to trace them"},
		{0, "", "2", OK, "are traced by its holder"},
		{unix.EPERM, "", "2", Note, "ptrace_scope is 2, which forbids"},
		{unix.EPERM, "", "3", Note, "ptrace_scope is 3, which forbids"},
		{unix.EPERM, "", "1", Note, "the host refuses ptrace"},
		{unix.ENOSYS, "", "", Note, "the host refuses ptrace (function not implemented)"},
		{0, "4711", "", Note, "process 4711 traces guise doctor"},
	} {
		e := &examination{}
		e.judgeTracing(c.refused, c.tracer, c.scope)
		f := e.Findings[0]
		if f.Status != c.status || !strings.Contains(f.Text, c.part) || (f.Next == "") != (c.status == OK) {
			t.Errorf("%+v: got %+v", c, f)
		}
		if strings.Contains(f.Next, "guise run --served -- CMD") != (c.refused != 0) {
			t.Errorf("%+v: what to type: %q", c, f.Next)
		}
	}
}

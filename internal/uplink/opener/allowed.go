// SPDX-License-Identifier: GPL-2.0-only

package opener

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/plan"
)

// AllowedFile says who may use what: a line for each, "UID IFNAME WAY". guise setup writes it.
const AllowedFile = "/etc/guise/uplinks"

// Allowed is a line of it.
type Allowed struct {
	UID       int
	Interface string
	Way       string // share is the only one so far
}

func (a Allowed) String() string { return fmt.Sprintf("%d %s %s", a.UID, a.Interface, a.Way) }

const mostAllowed = 64 << 10 // bytes

// ReadAllowed reads the file; none is no error. It is believed only if it is root's and nobody else may
// write it.
func ReadAllowed(path string) ([]Allowed, error) {
	file, st, err := access.OpenToRead(unix.AT_FDCWD, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%s is no file, and what it says does not count; remove it", path)
	case st.Uid != 0 || st.Mode&0o022 != 0:
		return nil, fmt.Errorf("%s is of user %d with mode %o, and what it says does not count; expected root's, that nobody else may write",
			path, st.Uid, st.Mode&0o7777)
	case st.Size > mostAllowed:
		return nil, fmt.Errorf("%s has %d bytes; expected %d at most", path, st.Size, mostAllowed)
	}
	text, err := io.ReadAll(io.LimitReader(file, mostAllowed))
	if err != nil {
		return nil, err
	}
	return parseAllowed(path, string(text))
}

func parseAllowed(path, text string) (all []Allowed, err error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		wrong := fmt.Errorf("%s: %q is no line that guise wrote; expected UID IFNAME %s", path, line, plan.Share)
		if len(words) != 3 || words[2] != plan.Share {
			return nil, wrong
		}
		uid, err := strconv.ParseUint(words[0], 10, 31)
		if err != nil || plan.CheckDevice(words[1]) != nil {
			return nil, wrong
		}
		all = append(all, Allowed{int(uid), words[1], words[2]})
	}
	return all, nil
}

// Of returns the interfaces that a user may use.
func Of(all []Allowed, uid int) (names []string) {
	for _, a := range all {
		if a.UID == uid {
			names = append(names, a.Interface)
		}
	}
	return names
}

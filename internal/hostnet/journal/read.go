// SPDX-License-Identifier: GPL-2.0-only

package journal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/tap"
)

// mostText is how long a journal may be. One of a host with a thousand interfaces has 200 KiB.
const mostText = 4 << 20

// TableName is the name of the nftables tables of the stack whose journal it is.
func (j *Journal) TableName() string { return "guise_" + j.ID() }

// read reads a file of the locked folder if it is a journal of this user's own. Other users may
// have been able to write in the folder once, and what they left there stays theirs.
func (l *Locked) read(path string) ([]byte, error) {
	file, st, err := access.OpenToRead(l.FD(), path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%s is no journal: expected a file; remove it", path)
	case int(st.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s is of user %d, not yours (%d), and what it says is not done; remove it", path, st.Uid, os.Geteuid())
	case st.Mode&0o022 != 0:
		return nil, fmt.Errorf("other users may write %s (mode %o), and what it says is not done; remove it", path, st.Mode&0o7777)
	case st.Size > mostText:
		return nil, fmt.Errorf("%s is no journal: it has %d bytes, expected %d at most; remove it", path, st.Size, mostText)
	}
	return io.ReadAll(io.LimitReader(file, mostText))
}

// parse reads the text of a journal. One that names anything that guise does not change is
// refused whole.
func parse(path string, text []byte) (*Journal, error) {
	j := &Journal{path: path}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, fmt.Errorf("%s is no journal: %w", path, err)
	}
	if j.Version != version {
		return nil, fmt.Errorf("%s has version %d, this guise knows %d; run the guise that wrote it", path, j.Version, version)
	}
	for _, s := range j.Steps {
		if !j.mayName(s) {
			return nil, fmt.Errorf("%s is no journal of guise's: no stack needs the step %s; remove it", path, s)
		}
	}
	return j, nil
}

func (s Step) String() string {
	text, _ := json.Marshal(s) // it cannot fail with these types
	return string(text)
}

// value is one of the sysctls that guise changes.
var value = regexp.MustCompile(`^[0-9]{1,10}$`)

// ports is a list of ports, as Linux writes it, and mostPorts what it takes: a page.
var ports = regexp.MustCompile(`^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$`)

const mostPorts = 4096

// mayName reports whether guise makes such a change.
func (j *Journal) mayName(s Step) bool {
	switch s.Kind {
	case Table:
		device, of := strings.CutPrefix(s.Name, j.TableName()+"_")
		return (s.Family == "ip" || s.Family == "ip6") && s.Name == j.TableName() ||
			s.Family == "netdev" && of && isInterface(device)
	case Ports:
		return len(s.Set) < mostPorts && ports.MatchString(s.Set)
	case Device:
		return s.Index > 0 && strings.HasPrefix(s.Name, tap.Prefix) && isInterface(s.Name)
	case Sysctl:
		return isForwarding(s.Key) && value.MatchString(s.Set) && value.MatchString(s.Old)
	}
	return false
}

// isForwarding reports whether key is one of those that internal/hostnet/nat changes.
func isForwarding(key string) bool {
	part := strings.Split(key, "/")
	if len(part) != 5 || part[0] != "net" || part[2] != "conf" || !isInterface(part[3]) {
		return false
	}
	switch part[1] {
	case "ipv4":
		return part[4] == "forwarding"
	case "ipv6":
		return slices.Contains([]string{"forwarding", "accept_ra", "force_forwarding"}, part[4])
	}
	return false
}

// isInterface reports whether the host's kernel accepts the name for an interface
// (dev_valid_name).
func isInterface(name string) bool {
	for i := range len(name) {
		if strings.IndexByte("/: \t\n\v\f\r\xa0\x00", name[i]) >= 0 {
			return false
		}
	}
	return name != "" && name != "." && name != ".." && len(name) < unix.IFNAMSIZ
}

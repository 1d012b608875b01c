// SPDX-License-Identifier: GPL-2.0-only

package opener

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"guise/internal/hostnet/share"
	"guise/internal/plan"
)

// The verbs of requests.
const (
	verbPorts     = "ports"
	verbOpen      = "open"
	verbAddresses = "addresses"
	verbClose     = "close"
)

// request is what a user asks for.
type request struct {
	seq       uint64
	verb      string
	ports     share.Ports // of verbPorts; none: any
	name      string      // of the others
	addresses []netip.Addr
}

var errSense = errors.New("this is no request")

// parse reads a message. An error without a number of the request, 0, is one after which no further message
// is read.
func parse(message []byte) (r request, err error) {
	if len(message) > mostMessage {
		return r, errSense
	}
	for _, c := range message {
		if c < ' ' || c > '~' {
			return r, errSense
		}
	}
	words := strings.Split(string(message), " ")
	if len(words) < 2 {
		return r, errSense
	}
	if r.seq, err = strconv.ParseUint(words[0], 10, 64); err != nil || r.seq == 0 {
		return request{}, errSense
	}
	r.verb = words[1]
	words = words[2:]
	if r.verb == verbPorts {
		return r, r.takePorts(words)
	}
	if len(words) == 0 {
		return r, errSense
	}
	if r.name = words[0]; plan.CheckDevice(r.name) != nil {
		return r, errors.New("this is no name of an interface")
	}
	switch r.verb {
	case verbOpen, verbClose:
		if len(words) != 1 {
			return r, errSense
		}
	case verbAddresses:
		return r, r.takeAddresses(words[1:])
	default:
		return r, errSense
	}
	return r, nil
}

func (r *request) takePorts(words []string) error {
	switch {
	case len(words) == 0:
		return nil
	case len(words) > 1 || strings.Count(words[0], ",") >= mostRanges:
		return errSense
	}
	ports, err := share.ParsePorts(words[0])
	if err != nil {
		return err
	}
	switch {
	case len(ports) == 0:
		return errSense
	case ports[0].First < leastPort:
		return fmt.Errorf("ports below %d are not a user's; port %d was asked for", leastPort, ports[0].First)
	case ports.Count() > mostPorts:
		return fmt.Errorf("a user's stack has at most %d ports; %d were asked for", mostPorts, ports.Count())
	}
	r.ports = ports
	return nil
}

func (r *request) takeAddresses(words []string) error {
	if len(words) > mostAddresses {
		return fmt.Errorf("an uplink has at most %d addresses", mostAddresses)
	}
	for _, w := range words {
		a, err := netip.ParseAddr(w)
		if err != nil || a.Zone() != "" || a.Is4In6() {
			return errors.New("this is no address")
		}
		r.addresses = append(r.addresses, a)
	}
	return nil
}

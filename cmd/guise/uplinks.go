// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"guise/internal/holder"
	"guise/internal/hostnet"
	"guise/internal/hostnet/share"
	"guise/internal/plain"
	"guise/internal/plan"
	"guise/internal/uplink"
)

// readUplinks reads the uplinks of a config.
func (w *wishes) readUplinks() error {
	for i, file := range w.Uplinks {
		key := fmt.Sprintf("uplink.%d", i)
		if file.Interface == "" {
			return w.wrong(key, errors.New(`has no interface; expected interface = "wlan0", say`))
		}
		u, err := plan.NewUplink(file.Interface, w.origin(key, ""), w.origin(key, ""))
		if err != nil {
			return w.wrong(key, err)
		}
		if u.Ports, err = plan.ParsePorts(file.Ports); err != nil {
			return w.wrong(key+".ports", err)
		}
		u.Flags, u.Prefer = file.Endpoint, file.Prefer
		options := [][2]string{}
		for _, a := range file.Addresses {
			options = append(options, [2]string{"address", a})
		}
		for _, g := range file.Gateways {
			options = append(options, [2]string{"gateway", g})
		}
		for option, value := range map[string]int{"metric": file.Metric, "mtu": file.MTU} {
			if w.Says(key + "." + option) {
				options = append(options, [2]string{option, fmt.Sprint(value)})
			}
		}
		for _, o := range options {
			if err := u.SetOption(o[0], o[1]); err != nil {
				return w.wrong(key, err)
			}
		}
		if file.Budget != "" {
			if u.Budget, err = plan.ParseBudget(file.Budget); err != nil {
				return w.wrong(key+".budget", err)
			}
		}
		if err := u.SetWay(file.Way); err != nil {
			return w.wrong(key, err)
		}
		w.uplinks = append(w.uplinks, u)
	}
	return nil
}

// prepareHost does on the host what the stack needs of it.
func (s *settings) prepareHost(stop <-chan os.Signal) (*hostnet.Host, error) {
	if len(s.uplinks) == 0 {
		return hostnet.Prepare(s.id, s.Links, holder.AnyEnding)
	}
	if err := hostnet.MayUplink(s.uplinks); err != nil {
		return nil, err
	}
	if caught, err := uplink.Check(s.uplinks, stop); err != nil {
		return nil, err
	} else if caught != nil {
		return nil, interrupted(caught)
	}
	if err := s.planFollow(); err != nil {
		return nil, err
	}
	host, ports, err := hostnet.PrepareUplinks(s.id, s.uplinks, holder.AnyEnding)
	if err == nil && len(ports) > 0 {
		s.ports = ports
		for _, setting := range share.StackSettings(ports) {
			s.Follow.Sysctls = append(s.Follow.Sysctls, plan.Sysctl{Key: setting.Key, Value: setting.Value})
		}
	}
	return host, err
}

// propose finds what a plan that is only shown lacks. The ports of uplinks are taken when there is a stack,
// and their addresses come while it runs.
func (s *settings) propose() error {
	if len(s.uplinks) > 0 {
		if err := s.planFollow(); err != nil {
			return err
		}
	} else if err := hostnet.Propose(s.Links); err != nil {
		return err
	}
	if !s.tun {
		return nil
	}
	return s.proposeGuests()
}

// planFollow has the plan start what follows the host.
func (s *settings) planFollow() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the path of this program: %w", err)
	}
	s.Follow, err = plan.NewFollow(self)
	return err
}

// follow has the descriptors of the process that follows the host, which the holder starts.
type follow struct {
	config, report *os.File // the holder's
	hear           *os.File // ours
}

// openFollow opens them, if the stack has uplinks.
func (s *settings) openFollow(host *hostnet.Host) (*follow, error) {
	f := &follow{}
	if len(s.uplinks) == 0 {
		return f, nil
	}
	c := uplink.Config{MPTCP: s.MPTCP, Journal: host.Journal(), Ports: s.ports.String(), Uplinks: s.uplinks}
	var err error
	if f.config, err = c.File(); err != nil {
		return nil, err
	}
	if f.hear, f.report, err = os.Pipe(); err != nil {
		f.close()
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	return f, nil
}

func (f *follow) files() []*os.File {
	if f.config == nil {
		return nil
	}
	return []*os.File{f.config, f.report}
}

func (f *follow) close() {
	for _, file := range []*os.File{f.config, f.report, f.hear} {
		if file != nil {
			file.Close()
		}
	}
}

// followTime is how long the first look at the uplinks may take; see the times of internal/uplink.
const followTime = 30 * time.Second

// await waits until the uplinks are there, as far as they can be, and passes on what is said of them.
func (f *follow) await(stop <-chan os.Signal) error {
	if f.config == nil {
		return nil
	}
	f.report.Close() // else it would not end with the follower
	f.report = nil
	result := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(f.hear)
		for lines.Scan() {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			switch word {
			case "note":
				complain(errors.New(plain.Text(rest)))
			case "error":
				result <- usage("%s", plain.Text(rest))
				return
			case "ok":
				result <- nil
				return
			}
		}
		result <- errors.New("the process that follows the host's interfaces ended before it had looked at them")
	}()
	select {
	case err := <-result:
		return err
	case caught := <-stop:
		return interrupted(caught)
	case <-time.After(followTime):
		return fmt.Errorf("the process that follows the host's interfaces has not looked at them within %v", followTime)
	}
}

// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"guise/internal/holder"
	"guise/internal/hostnet"
	"guise/internal/hostnet/access"
	"guise/internal/hostnet/share"
	"guise/internal/plain"
	"guise/internal/plan"
	"guise/internal/uplink"
	"guise/internal/uplink/opener"
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
	refused := hostnet.MayUplink(s.uplinks)
	if refused != nil {
		if err := s.askOpener(refused); err != nil {
			return nil, err
		}
	}
	if caught, err := uplink.Check(s.uplinks, stop); err != nil {
		return nil, err
	} else if caught != nil {
		return nil, interrupted(caught)
	}
	if err := s.planFollow(); err != nil {
		return nil, err
	}
	host, ports, err := s.reservePorts()
	if err == nil && len(ports) > 0 {
		s.ports = ports
		for _, setting := range share.StackSettings(ports) {
			s.Follow.Sysctls = append(s.Follow.Sysctls, plan.Sysctl{Key: setting.Key, Value: setting.Value})
		}
	}
	return host, err
}

// askOpener connects to what opens uplinks for a user who may not do that, if it may open these. refused says
// why the user may not.
func (s *settings) askOpener(refused error) error {
	uid := os.Geteuid()
	client, err := opener.Dial()
	if errors.Is(err, opener.ErrNone) {
		return refused
	}
	if err != nil {
		return err
	}
	allowed, err := opener.ReadAllowed(opener.AllowedFile)
	for _, u := range s.uplinks {
		switch {
		case err != nil:
		case u.Way != plan.Share:
			err = access.Refuse("%s: what root has set up for you (guise setup --uplink) is uplinks that share the host's address; "+
				"%s takes root; use sudo (with --user NAME the stack is still that user's)", u.Origin(), u.Way)
		case !slices.Contains(opener.Of(allowed, uid), u.Name):
			err = access.Refuse("%s: %s is not among the interfaces that root has set up for you (%s); sudo guise setup --user %d "+
				"--uplink %s adds it", u.Origin(), u.Name, strings.Join(opener.Of(allowed, uid), ", "), uid, u.Name)
		}
	}
	if err != nil {
		client.Close()
		return err
	}
	s.opener = client
	return nil
}

// reservePorts reserves the ports of the stack, if it has some of the host's.
func (s *settings) reservePorts() (*hostnet.Host, share.Ports, error) {
	if s.opener == nil {
		return hostnet.PrepareUplinks(s.id, s.uplinks, holder.AnyEnding)
	}
	want, _ := plan.SharedPorts(s.uplinks)
	var refused opener.RefusedError
	var list string
	var err error
	hostnet.AwaitStacks(holder.AnyEnding, func() bool {
		list, err = s.opener.Ports(plan.FormatPorts(want))
		busy := len(want) > 0 && errors.As(err, &refused)
		if busy {
			time.Sleep(50 * time.Millisecond) // it answers so many questions a second
		}
		return busy
	})
	if err != nil {
		if errors.As(err, &refused) {
			err = access.Refuse("%w", err)
		}
		return nil, nil, err
	}
	ports, err := share.ParsePorts(list)
	return &hostnet.Host{}, ports, err
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
	if s.Follow, err = plan.NewFollow(self); err == nil {
		s.Follow.Opener = s.opener != nil
	}
	return err
}

// isAnothers reports whether the stack is that of another user than who starts it, and not root's.
func (s *settings) isAnothers() bool {
	if s.User == "" {
		return false
	}
	who, err := user.Lookup(s.User)
	if err != nil {
		who, err = user.LookupId(s.User)
	}
	return err != nil || who.Uid != "0" && who.Uid != strconv.Itoa(os.Geteuid())
}

// follow has the descriptors of the process that follows the host, which the holder starts.
type follow struct {
	config, report *os.File // the holder's
	hear           *os.File // ours
	opener         *os.File // the holder's; nil: none
}

// openFollow opens them, if the stack has uplinks.
func (s *settings) openFollow(host *hostnet.Host) (*follow, error) {
	f := &follow{}
	if len(s.uplinks) == 0 {
		return f, nil
	}
	c := uplink.Config{MPTCP: s.MPTCP, Journal: host.Journal(), Ports: s.ports.String(), Opener: s.opener != nil, User: s.isAnothers(), Uplinks: s.uplinks}
	if s.opener != nil {
		f.opener = s.opener.File()
	}
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
	files := []*os.File{f.config, f.report}
	if f.opener != nil {
		files = append(files, f.opener)
	}
	return files
}

func (f *follow) close() {
	for _, file := range []*os.File{f.config, f.report, f.hear, f.opener} {
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

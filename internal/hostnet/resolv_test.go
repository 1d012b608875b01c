// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"net/netip"
	"reflect"
	"testing"

	"guise/internal/plan"
)

func TestServersOfTheHostsLoopbackAreRelayed(t *testing.T) {
	var servers []netip.Addr
	for _, text := range []string{"127.0.0.53", "192.0.2.53", "::1", "192.0.2.54"} {
		servers = append(servers, netip.MustParseAddr(text))
	}
	seen, relays := RelayResolvers(servers)
	want := "# written by guise run\nnameserver 169.254.77.11\nnameserver 192.0.2.53\nnameserver 169.254.77.12\nsearch a.test\n"
	if text := ResolvConf(seen, []string{"search a.test"}); text != want {
		t.Errorf("got %q", text)
	}
	if !reflect.DeepEqual(relays, []plan.Relay{
		{From: "169.254.77.11:53", To: "127.0.0.53:53"}, {From: "169.254.77.12:53", To: "[::1]:53"}}) {
		t.Errorf("got %v", relays)
	}
	if _, relays := RelayResolvers(servers[1:2]); relays != nil {
		t.Errorf("a server that the stack can reach is relayed: %v", relays)
	}
}

// SPDX-License-Identifier: GPL-2.0-only

// Package config is the file that a named stack is made from: TOML, read strictly.
//
// The structs here are its only description: their tags have the name of each key, the
// values that it takes and what it does. From the tags come the messages about mistakes,
// the reference (docs/config.md), the man page (docs/guise-config.5) and the JSON schema
// (docs/guise.schema.json). `go generate` writes the last three.
//
// `guise run` fills the same structs from its flags. Only internal/plan knows what a
// setting means.
package config

//go:generate ../../make/go run ./generate ../../docs

// Stack is a whole file.
//
// The tags: doc says what a key does, example is a value, allowed lists all possible
// values, default is what happens without the key, flag is the flag of `guise run` that
// does the same. A word in braces is replaced by the list of link kinds (field.go).
type Stack struct {
	Name    string `toml:"name" doc:"The name of the stack, by which commands find it: 1 to 32 letters, digits, '.', '_' or '-'." example:"\"web\"" default:"that of the file, without .toml" flag:"name"`
	Profile string `toml:"profile" doc:"Settings to begin with; what this file says itself comes after them. guise profiles lists them." example:"\"android-2.1\"" default:"none" flag:"profile"`
	Memory  string `toml:"memory" doc:"The memory of the stack, from 32M to 4076M." example:"\"512M\"" default:"256M" flag:"memory"`
	CC      string `toml:"cc" doc:"The congestion control of the stack." example:"\"bbr\"" default:"cubic" flag:"cc"`

	Extensions []string `toml:"extension" doc:"What the stack's kernel must have of out-of-tree code: it is taken from a kernel image that has all of these (docs/extensions.md)." example:"[\"lia\"]" default:"none" flag:"extension"`

	Netem string `toml:"netem" doc:"Impairs what the stack sends on each link, as tc-netem(8) says it." example:"\"delay 20ms loss 0.2%\"" default:"none" flag:"netem"`

	Privileges string `toml:"privileges" doc:"What programs may do on the stack: everything, whoever runs them, or what their capabilities on the host allow (ports below 1024, packet sockets, addresses, routes, nftables)." allowed:"all|host" example:"\"host\"" default:"all" flag:"privileges"`
	User       string `toml:"user" doc:"Whose the stack is, by login or number: what handles packets and carries the stack has the rights of this user alone, and programs of others are served. To name another user than oneself takes root." example:"\"www-data\"" default:"who starts it" flag:"user"`
	Served     bool   `toml:"served" doc:"Programs do not map the memory of the stack: a process of the holder's makes the calls of each. They cannot harm the stack then, whatever they do and however they end, and take longer for each call." example:"true" default:"false" flag:"served"`

	Localhost *bool    `toml:"localhost" doc:"Whether host.guise.internal is the host's localhost." example:"false" default:"true, but false without a link, or with one that guise did not make" flag:"localhost"`
	DNS       []string `toml:"dns" doc:"Name servers of the stack's programs, in place of those of the host." example:"[\"192.0.2.53\"]" default:"the host's" flag:"dns"`
	Publish   []string `toml:"publish" doc:"Ports of the stack that are ports of the host: [ADDR:]HOSTPORT:PORT[/udp]." example:"[\"8080:80\", \"0.0.0.0:5353:53/udp\"]" default:"none" flag:"publish"`
	Guests    bool     `toml:"guests" doc:"Whether the stack has a network namespace of the host for programs that cannot be preloaded (static ones, Go's), whose only way out is the stack; guise run --stack NAME puts them there." example:"true" default:"false" flag:"mode"`
	Nftables  string   `toml:"nftables" doc:"A ruleset for the stack, as nft(8) reads it. It is given to the program nft, joined to the stack." example:"'''\ntable inet filter {\n    chain input { type filter hook input priority 0; tcp dport 23 drop; }\n}\n'''" default:"none"`

	Sysctl  map[string]any `toml:"sysctl" doc:"Sysctls of the stack, by their names: texts or whole numbers." example:"\"net.ipv4.tcp_sack\" = 0" default:"those of Linux" flag:"sysctl"`
	MPTCP   MPTCP          `toml:"mptcp" doc:"Multipath TCP." flag:"mptcp"`
	Links   []Link         `toml:"link" doc:"The links, in their order. Without one, the stack gets the best way out that the user may have; with kind = \"none\", lo only." flag:"link"`
	Uplinks []Uplink       `toml:"uplink" doc:"Interfaces of the host that are paths of the stack, in place of links; what becomes of them is followed. It takes root." flag:"uplink"`
	Routes  []Route        `toml:"route" doc:"Routes beside those that the gateways make."`
	Rules   []Rule         `toml:"rule" doc:"Rules that choose a table of routes (policy routing). Each part that is there must match."`

	sysctls []KeyValue
	lines   positions
	file    string
}

// MPTCP is about Multipath TCP.
type MPTCP struct {
	Enabled        bool       `toml:"enabled" doc:"Makes each TCP socket of the stack's programs a Multipath TCP socket. The addresses of all links except the first are further paths, unless there are endpoints." example:"true" default:"false" flag:"mptcp"`
	AcceptAddAddr  *int       `toml:"accept_add_addr" doc:"How many addresses that a peer announces are taken: 0 to 8." example:"4" default:"8 with enabled, else Linux's 0"`
	Subflows       *int       `toml:"subflows" doc:"How many further subflows a connection may have: 0 to 8." example:"4" default:"8 with enabled, else Linux's 2"`
	EndpointTables []Endpoint `toml:"endpoint" doc:"Addresses that are paths of their own."`
}

// Endpoint is an address that MPTCP may use.
type Endpoint struct {
	Address string   `toml:"address" doc:"An address of the stack." example:"\"192.0.2.2\"" default:"must be given"`
	Link    string   `toml:"link" doc:"The link that has it." example:"\"eth1\"" default:"must be given"`
	Flags   []string `toml:"flags" doc:"What it is for." allowed:"signal|subflow|backup|fullmesh" example:"[\"subflow\"]" default:"[\"subflow\"]"`
}

// Link is one network interface of the stack.
type Link struct {
	Name      string   `toml:"name" doc:"The name of the interface in the stack." example:"\"wan0\"" default:"eth0, eth1 and so on"`
	Kind      string   `toml:"kind" doc:"What the link is: {meanings of kinds}, or none." allowed:"{kinds}|none" example:"\"tap\"" default:"the best that the user may have; tap if there are several links"`
	Device    string   `toml:"device" doc:"Of a tap or tun: the host's interface. A tap that exists is used as it is; else it is made if the link has addresses, and guise says so; a tun must exist." example:"\"tap0\"" default:"a tap that guise makes, with the host as its router"`
	Path      string   `toml:"path" doc:"Of a stream: the path of the socket." example:"\"/tmp/passt_1.socket\"" default:"must be given"`
	MAC       string   `toml:"mac" doc:"The MAC address of the stack's side." example:"\"02:00:00:00:00:01\"" default:"one by chance"`
	MTU       int      `toml:"mtu" doc:"The MTU, from {limits of MTUs}." example:"1400" default:"{MTUs of kinds}, or that of the host's way out"`
	Ports     string   `toml:"ports" doc:"Of a packet: the stack has the host's addresses on the interface, with these ports; auto: a range that the host does not use." example:"\"61000-65535,8080\"" default:"the stack has the interface alone"`
	Offload   *bool    `toml:"offload" doc:"Whether segmentation and checksums may be left to the other side; if not, each frame is one packet." example:"false" default:"true" flag:"offload"`
	Addresses []string `toml:"addresses" doc:"Addresses with the length of their prefix." example:"[\"192.0.2.2/24\", \"2001:db8::2/64\"]" default:"of a network that the host does not use, on links that guise makes; else none" flag:"ip"`
	Gateways  []string `toml:"gateways" doc:"Routers, at most one for each of IPv4 and IPv6. The first link's are the default routes; the others serve what is sent from their own link's addresses." example:"[\"192.0.2.1\"]" default:"the host, on links that guise makes; else none" flag:"gateway"`
	Qdisc     string   `toml:"qdisc" doc:"The queueing discipline of the link, as tc says it." example:"\"fq\"" default:"Linux's"`
}

// Uplink is one interface of the host that is a path of the stack.
type Uplink struct {
	Interface string   `toml:"interface" doc:"The host's interface; that of the stack has the same name." example:"\"wlan0\"" default:"must be given"`
	Way       string   `toml:"way" doc:"How the stack uses it: with the host's own addresses and ports that the host does not use (share), with addresses of its own (own), or with all of it, so that the host's programs cannot use it meanwhile (exclusive)." allowed:"share|own|exclusive" example:"\"own\"" default:"share; own if it has addresses"`
	Ports     []string `toml:"ports" doc:"With share: the ports of the stack, for TCP and UDP; connections take theirs from the longest range. They are the same on all uplinks." example:"[\"61000-65535\", \"8080\"]" default:"some that the host does not use"`
	Addresses []string `toml:"addresses" doc:"With own: addresses with the length of their prefix, at most one for each of IPv4 and IPv6." example:"[\"192.0.2.9/24\"]" default:"those that the network gives (DHCP, router advertisements)"`
	Gateways  []string `toml:"gateways" doc:"With addresses: their routers." example:"[\"192.0.2.1\"]" default:"none"`
	Endpoint  []string `toml:"endpoint" doc:"What MPTCP uses the path for." allowed:"subflow|backup|signal|fullmesh" example:"[\"backup\"]" default:"[\"subflow\"]"`
	Metric    int      `toml:"metric" doc:"The metric of its default route: the lowest is used first." example:"10" default:"100 for the first, 101 for the second and so on"`
	MTU       int      `toml:"mtu" doc:"The MTU, if it is lower than that of the host." example:"1400" default:"the host's"`
	Prefer    bool     `toml:"prefer" doc:"All others are backup paths, and its default route is used first." example:"true" default:"false" flag:"prefer"`
	Budget    string   `toml:"budget" doc:"When the stack has sent and received so much over it, it becomes a backup path." example:"\"200MB\"" default:"none" flag:"budget"`
}

// Route is one route.
type Route struct {
	To    string `toml:"to" doc:"A prefix, or default." example:"\"10.0.0.0/8\"" default:"must be given"`
	Via   string `toml:"via" doc:"The next router." example:"\"192.0.2.9\"" default:"none: what it reaches is on the link"`
	Link  string `toml:"link" doc:"The interface." example:"\"eth0\"" default:"the one that via is on"`
	Table int    `toml:"table" doc:"The table of routes." example:"100" default:"the main one"`
}

// Rule is one rule of policy routing.
type Rule struct {
	From     string `toml:"from" doc:"What is sent from this prefix." example:"\"192.0.2.2\"" default:"any"`
	To       string `toml:"to" doc:"What is sent to this prefix." example:"\"198.51.100.0/24\"" default:"any"`
	In       string `toml:"in" doc:"What came in by this interface." example:"\"eth0\"" default:"any"`
	Out      string `toml:"out" doc:"What is sent by a socket that is bound to this interface." example:"\"eth1\"" default:"any"`
	Mark     int    `toml:"mark" doc:"What has this mark (SO_MARK, nftables)." example:"7" default:"any"`
	Priority int    `toml:"priority" doc:"Rules are tried in the order of their priorities." example:"1000" default:"before those there are"`
	Table    int    `toml:"table" doc:"The table of routes that is used then." example:"100" default:"must be given"`
}

// KeyValue is a sysctl as the user wrote it.
type KeyValue struct{ Key, Value string }

// Sysctls returns those of the file or the flags, in the order in which they were written.
func (s *Stack) Sysctls() []KeyValue { return s.sysctls }

// AddSysctl adds a sysctl that a flag set.
func (s *Stack) AddSysctl(key, value string) { s.sysctls = append(s.sysctls, KeyValue{key, value}) }

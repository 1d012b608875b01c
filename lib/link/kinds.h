/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one list of link kinds: their names, how they are written, what opens them, and what
 * their MTUs may be. The table of libguise comes from it (kinds.c), and those of the command
 * line (internal/plan/kinds.go and internal/hostnet/openers.go, which kinds.py writes). From these
 * come the messages, the help, the config's reference and its schema. `make check` fails when
 * one of them, or a document that has the list in prose, lacks a kind.
 *
 *	KIND(name, frames, mtu, forms, opener, command, meaning)
 *
 *	name	as it is written; its backend is guise_link_NAME
 *	frames	ETHERNET, or IP: packets without an Ethernet header
 *	mtu	the default
 *	forms	its forms in guise_link_add(), for messages: "A", "A or B", "A, B or C"
 *	opener	the function of internal/hostnet that opens it for a stack of the command line;
 *		none: no --link makes one
 *	command	its forms in a --link and a config. IFNAME, PATH and fd=N stand for what the
 *		user writes after the colon
 *	meaning	what it is, after "the link is ..."
 *
 * This file is included several times; the including file defines KIND.
 */

/*
 * MTUs. The least is what every IPv4 link carries (RFC 791), the most that of the host's own
 * devices and of the port's: a frame is no longer than the longest packet, with its Ethernet
 * header, of 14 bytes. Longer ones a stream could not say the length of.
 */
#define LINK_MTU_LEAST         68
#define LINK_MTU_MOST_ETHERNET 65521
#define LINK_MTU_MOST_IP       65535

KIND(tap, ETHERNET, 1500, "tap:IFNAME or tap:fd=N", openDevice, "tap, tap:IFNAME or tap:fd=N",
     "a tap of the host (Ethernet)")
KIND(tun, IP, 1500, "tun:IFNAME or tun:fd=N", openDevice, "tun:IFNAME or tun:fd=N",
     "a tun of the host (IP packets)")
KIND(passt, ETHERNET, 65520, "passt:PATH or passt:fd=N", openPasst, "passt",
     "a passt that guise starts")
KIND(stream, ETHERNET, 1500, "stream:PATH or stream:fd=N", openStream, "stream:PATH or stream:fd=N",
     "a Unix stream socket on which passt or QEMU waits")
KIND(packet, ETHERNET, 1500, "packet:IFNAME or packet:fd=N", openPacket,
     "packet:IFNAME or packet:fd=N", "a network interface of the host")
KIND(pair, ETHERNET, 1500, "pair:fd=MEMORY:BELL0:BELL1:END", none, "",
     "shared memory with another stack")

#undef KIND

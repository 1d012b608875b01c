// SPDX-License-Identifier: GPL-2.0-only
#include "watch.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <unistd.h>

#define HEADERS 160 /* IP, with options, and TCP, with options */
#define QUEUE   (1 << 20)
#define AT_ONCE 1024 /* so that a flood leaves time for other work */

/* A packet of TCP that comes from the port or goes there, from its IP header on. */
static bool attach_filter(int fd, uint16_t port)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x40, 0, 7),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 13),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 9, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 7, 8),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x60, 0, 7),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 5),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 40),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 2, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 42),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, HEADERS),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

void watch_open(struct watch *w, uint16_t port)
{
	struct sockaddr_ll all = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int queue = QUEUE;

	/* Without a protocol it hears nothing until it is bound. */
	w->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->fd < 0)
		return;
	setsockopt(w->fd, SOL_SOCKET, SO_RCVBUF, &queue, sizeof(queue));
	if (attach_filter(w->fd, port) && !bind(w->fd, (void *)&all, sizeof(all)))
		return;
	close(w->fd);
	w->fd = -1;
}

void watch_read(struct watch *w)
{
	for (int i = 0; w->fd >= 0 && i < AT_ONCE; i++) {
		struct sockaddr_ll from = { 0 };
		socklen_t length = sizeof(from);
		uint8_t packet[HEADERS];
		struct segment s;
		ssize_t n = recvfrom(w->fd, packet, sizeof(packet), 0, (void *)&from, &length);

		if (n < 0)
			return;
		/* What goes out on lo comes in there: once is enough. */
		if (from.sll_hatype == ARPHRD_LOOPBACK && from.sll_pkttype == PACKET_OUTGOING)
			continue;
		if (segment_read(&s, packet, (size_t)n))
			flows_see(&w->flows, &s);
	}
}

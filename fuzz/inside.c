// SPDX-License-Identifier: GPL-2.0-only
/* Inside the stack under test. */
#include "inside.h"

#include "guise/syscall.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS 8
#define PACKET_HDR  sizeof(struct virtio_net_hdr)
#define NO_WAIT     MSG_DONTWAIT

static int listener = -1, datagrams = -1;
static int connection[CONNECTIONS];
static uint32_t accepted;
static uint8_t buffer[1 << 16];

/* Ends a connection at once: nothing of it stays behind. */
static void cut(struct guise_stack *s, int fd)
{
	struct linger none = { 1, 0 };

	guise_setsockopt(s, fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	guise_close(s, fd);
}

static int serve_at(struct guise_stack *s, int type)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htobe16(FRAME_SERVICE) };
	int fd = guise_socket(s, AF_INET6, type, 0), err;

	if (fd < 0)
		return fd;
	err = guise_bind(s, fd, (struct sockaddr *)&at, sizeof(at));
	if (!err && type == SOCK_STREAM)
		err = guise_listen(s, fd, CONNECTIONS);
	return err ? err : fd;
}

int inside_start(struct guise_stack *s)
{
	int err = guise_link_set(s, "eth0", 1);

	if (!err)
		err = guise_addr_add(s, "eth0", "192.0.2.2/24");
	if (!err)
		err = guise_addr_add(s, "eth0", "2001:db8::2/64");
	for (int i = 0; i < CONNECTIONS; i++)
		connection[i] = -1;
	if (!err) {
		listener = serve_at(s, SOCK_STREAM);
		datagrams = serve_at(s, SOCK_DGRAM);
		err = listener < 0 ? listener : datagrams < 0 ? datagrams : 0;
	}
	return err;
}

void inside_serve(struct guise_stack *s)
{
	struct pollfd ready = { .fd = listener, .events = POLLIN };
	int fd, i;

	while (guise_poll(s, &ready, 1, 0) > 0) {
		fd = guise_accept4(s, listener, NULL, NULL, SOCK_NONBLOCK);
		if (fd < 0)
			break;
		i = (int)(accepted++ % CONNECTIONS);
		if (connection[i] >= 0)
			cut(s, connection[i]);
		connection[i] = fd;
	}
	for (i = 0; i < CONNECTIONS; i++) {
		ssize_t n = -EAGAIN;

		if (connection[i] < 0)
			continue;
		for (int turns = 0; turns < 4; turns++) {
			n = guise_recvfrom(s, connection[i], buffer, sizeof(buffer), NO_WAIT, NULL,
					   NULL);
			if (n <= 0)
				break;
			guise_sendto(s, connection[i], buffer, (size_t)(n % 3000),
				     NO_WAIT | MSG_NOSIGNAL, NULL, 0);
		}
		if (n != -EAGAIN && n <= 0) {
			cut(s, connection[i]);
			connection[i] = -1;
		}
	}
	for (i = 0; i < 64; i++) {
		struct sockaddr_in6 from;
		socklen_t len = sizeof(from);
		ssize_t n = guise_recvfrom(s, datagrams, buffer, sizeof(buffer), NO_WAIT,
					   (struct sockaddr *)&from, &len);

		if (n == -EAGAIN)
			break;
		if (n > 0 && n % 4 == 0)
			guise_sendto(s, datagrams, buffer, (size_t)n, NO_WAIT,
				     (struct sockaddr *)&from, len);
	}
}

int inside_merge(struct guise_stack *s, bool on)
{
	struct ethtool_value value = { ETHTOOL_SGRO, on };
	struct ifreq req = { .ifr_name = "eth0", .ifr_data = (char *)&value };

	return (int)guise_call(s, GUISE_NR_ioctl, datagrams, SIOCETHTOOL, (long)&req, 0, 0, 0);
}

const char *inside_loopback(struct guise_stack *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htobe32(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int at_home = guise_socket(s, AF_INET, SOCK_STREAM, 0), caller = -1, called = -1;
	const char *wrong = "a TCP connection over lo does not come about";
	char word[8] = "";

	if (at_home < 0 || guise_bind(s, at_home, (struct sockaddr *)&at, len) ||
	    guise_getsockname(s, at_home, (struct sockaddr *)&at, &len) ||
	    guise_listen(s, at_home, 1))
		goto out;
	caller = guise_socket(s, AF_INET, SOCK_STREAM, 0);
	if (caller < 0 || guise_connect(s, caller, (struct sockaddr *)&at, len))
		goto out;
	called = guise_accept4(s, at_home, NULL, NULL, 0);
	if (called < 0)
		goto out;
	wrong = "what is sent over lo does not arrive";
	if (guise_write(s, caller, "there", 5) == 5 && guise_read(s, called, word, 5) == 5 &&
	    !memcmp(word, "there", 5) && guise_write(s, called, "back", 4) == 4 &&
	    guise_read(s, caller, word, 4) == 4 && !memcmp(word, "back", 4))
		wrong = NULL;
out:
	if (called >= 0)
		cut(s, called);
	if (caller >= 0)
		cut(s, caller);
	if (at_home >= 0)
		guise_close(s, at_home);
	return wrong;
}

int inside_listen(struct guise_stack *s)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htobe16(ETH_P_IP) };
	struct ifreq req = { .ifr_name = "eth0" };
	int fd = guise_socket(s, AF_PACKET, SOCK_RAW, 0), one = 1, err;

	if (fd < 0)
		return fd;
	err = (int)guise_call(s, GUISE_NR_ioctl, fd, SIOCGIFINDEX, (long)&req, 0, 0, 0);
	at.sll_ifindex = req.ifr_ifindex;
	if (!err)
		err = guise_setsockopt(s, fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one));
	if (!err)
		err = guise_bind(s, fd, (struct sockaddr *)&at, sizeof(at));
	if (err) {
		guise_close(s, fd);
		return err;
	}
	return fd;
}

const char *inside_heard(struct guise_stack *s, int fd, const struct frame *f)
{
	const uint8_t *ports = f->bytes + FRAME_HDR + 14 + 20;
	struct virtio_net_hdr fed, heard;
	ssize_t n;

	/* The stack's own may pass by; those that are fed are known by their ports. */
	do {
		n = guise_recvfrom(s, fd, buffer, sizeof(buffer), NO_WAIT, NULL, NULL);
		if (n < 0)
			return "a packet socket in the stack did not see a frame that was fed";
	} while (n < (ssize_t)PACKET_HDR + 14 + 20 + 4 ||
		 memcmp(buffer + PACKET_HDR + 14 + 20, ports, 4));

	if ((size_t)n - PACKET_HDR != f->len - FRAME_HDR ||
	    memcmp(buffer + PACKET_HDR, f->bytes + FRAME_HDR, f->len - FRAME_HDR))
		return "a packet socket in the stack saw something else than what was fed";
	memcpy(&fed, f->bytes, sizeof(fed));
	memcpy(&heard, buffer, sizeof(heard));
	/* That it was found right meanwhile is well. */
	heard.flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	if (fed.flags != heard.flags || fed.csum_start != heard.csum_start ||
	    fed.csum_offset != heard.csum_offset)
		return "a frame's checksum is to be done elsewhere than its header said";
	return NULL;
}

static uint64_t number_after(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

void inside_received(struct guise_stack *s, uint64_t *ip4, uint64_t *ip6)
{
	static char text[1 << 14];
	const char *values;

	*ip4 = *ip6 = 0;
	/* A line of names, then one of numbers: forwarding, TTL, received. */
	if (guise_read_file(s, "/proc/net/snmp", text, sizeof(text)) > 0) {
		values = strstr(text, "\nIp: ");
		if (values)
			sscanf(values, "\nIp: %*u %*u %lu", ip4);
	}
	if (guise_read_file(s, "/proc/net/snmp6", text, sizeof(text)) > 0)
		*ip6 = number_after(text, "Ip6InReceives");
}

uint64_t inside_memory_free(struct guise_stack *s)
{
	static char text[1 << 12];

	if (guise_read_file(s, "/proc/meminfo", text, sizeof(text)) < 0)
		return 0;
	return number_after(text, "MemFree:");
}

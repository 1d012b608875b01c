// SPDX-License-Identifier: GPL-2.0-only
/*
 * A call is made of the shape that calls of its number have (lib/served/shapes.h), so that most
 * get past the first checks: pointers to what is meant to be there, structures that point to
 * others, numbers that are likely. A part of the pointers leads out of the ring, over its edges, to
 * the stack's memory or the servant's; a part of the numbers is of calls that members alone make.
 */
#include "served_call.h"

#include "guise/contract.h"
#include "guise/syscall.h"
#include "served/shapes.h"

#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#define WORDS 64
#define SMALL 64 /* bytes of most buffers */

/* The call at hand. */
static struct rng *rng;
static const struct served_targets *targets;
static char *at, *end;
static uint64_t *word[WORDS];
static unsigned int words;

static const uint32_t members_only[] = {
	GUISE_NR_ALLOC,     GUISE_NR_ALLOC, GUISE_NR_ALLOC, GUISE_NR_FREE,
	GUISE_NR_NETNS_NEW, GUISE_NR_GIVE,  GUISE_NR_TAKE,  GUISE_NR_LINK_ADD,
	GUISE_NR_RING,      GUISE_NR_FORK,  GUISE_NR_END,   GUISE_NR_kill,
};

static const uint64_t sizes[] = { 0,
				  1,
				  2,
				  4,
				  8,
				  16,
				  24,
				  64,
				  256,
				  4096,
				  SERVED_CALL_ROOM,
				  65536,
				  1u << 20,
				  GUISE_RING_SIZE,
				  INT32_MAX,
				  UINT32_MAX,
				  ~0ull,
				  ~0ull - 4095 };

static const char *const paths[] = {
	"/",
	"/proc",
	"/proc/self/net/dev",
	"/proc/meminfo",
	"/dev/null",
	"",
	"./..",
	"/proc/sys/net/ipv4/ip_forward",
	"/proc/thread-self/ns/net",
	"/tmp",
	"tmpfs",
};

static const uint32_t requests[] = {
	SIOCGIFCONF, SIOCETHTOOL, SIOCGIFFLAGS, SIOCGIFINDEX,   SIOCGIFHWADDR, FIONREAD,
	SIOCGIFNAME, SIOCATMARK,  FIONBIO,      SIOCGSTAMP_OLD, SIOCGARP,      SIOCDELRT,
};

static uint64_t size(void)
{
	return rng_one_in(rng, 3) ? rng_pick(rng, sizes) : rng_below(rng, SMALL);
}

static void remember(void *memory, size_t bytes)
{
	uint64_t *first = memory;

	for (size_t i = 0; i < bytes / 8 && i < 8 && words < WORDS; i++)
		word[words++] = first + i;
}

/* Room for so many bytes, or what is left of it, with anything in it. */
static void *take(size_t bytes)
{
	char *got = at;

	bytes = (bytes + 7) & ~7ul;
	if (bytes > (size_t)(end - at))
		bytes = (size_t)(end - at) & ~7ul;
	at += bytes;
	for (size_t i = 0; i < bytes && i < SMALL; i += 8) {
		uint64_t any = rng_one_in(rng, 4) ? rng_next(rng) : rng_below(rng, 8);

		memcpy(got + i, &any, 8);
	}
	remember(got, bytes);
	return got;
}

/* Where a pointer leads: mostly to `good`. */
static uint64_t pointer(const void *good)
{
	uint64_t bad;

	if (!rng_one_in(rng, 10))
		return (uint64_t)(uintptr_t)good;
	if (rng_one_in(rng, 4))
		return rng_one_in(rng, 2) ? 0 : rng_next(rng);
	bad = targets->address[rng_below(rng, targets->n)];
	return bad + rng_below(rng, 128) - 64;
}

static void address(struct sockaddr_storage *a)
{
	switch (rng_below(rng, 5)) {
	case 0:
		*(struct sockaddr_in6 *)a = (struct sockaddr_in6){
			.sin6_family = AF_INET6,
			.sin6_port = htons((uint16_t)(1000 + rng_below(rng, 8))),
			.sin6_addr = IN6ADDR_LOOPBACK_INIT,
		};
		break;
	case 1:
		*(struct sockaddr_nl *)a = (struct sockaddr_nl){ .nl_family = AF_NETLINK };
		break;
	case 2:
		*(struct sockaddr_un *)a = (struct sockaddr_un){ .sun_family = AF_UNIX };
		((struct sockaddr_un *)a)->sun_path[1] = (char)('a' + rng_below(rng, 4));
		break;
	default:
		*(struct sockaddr_in *)a = (struct sockaddr_in){
			.sin_family = AF_INET,
			.sin_port = htons((uint16_t)(1000 + rng_below(rng, 8))),
			.sin_addr = { htonl(INADDR_LOOPBACK) },
		};
	}
}

static uint64_t name(void)
{
	struct sockaddr_storage *a = take(sizeof(*a));

	if ((char *)(a + 1) <= end)
		address(a);
	return pointer(a);
}

static uint64_t control(void)
{
	struct cmsghdr *c = take(64);

	if ((char *)c + 64 <= end) {
		c->cmsg_len = rng_one_in(rng, 2) ? CMSG_LEN(4 * rng_below(rng, 4)) : size();
		c->cmsg_level = rng_one_in(rng, 2) ? SOL_SOCKET : (int)rng_below(rng, 42);
		c->cmsg_type = (int)rng_below(rng, 4);
	}
	return pointer(c);
}

static uint64_t buffers(uint64_t n)
{
	struct iovec *iov = take(n * sizeof(*iov));

	for (uint64_t i = 0; i < n && (char *)(iov + i + 1) <= end; i++) {
		uint64_t bytes = size();

		iov[i].iov_base = (void *)(uintptr_t)pointer(take(bytes < SMALL ? bytes : SMALL));
		iov[i].iov_len = bytes;
	}
	return pointer(iov);
}

static void message(struct msghdr *m)
{
	m->msg_iovlen = rng_one_in(rng, 8) ? size() : rng_below(rng, 4);
	m->msg_namelen = rng_one_in(rng, 4) ? (socklen_t)size() : 16;
	m->msg_controllen = rng_one_in(rng, 4) ? size() : rng_below(rng, 64);
	m->msg_name = (void *)(uintptr_t)(rng_one_in(rng, 2) ? name() : 0);
	m->msg_control = (void *)(uintptr_t)control();
	m->msg_iov = (void *)(uintptr_t)buffers(m->msg_iovlen < 8 ? m->msg_iovlen : 8);
	m->msg_flags = 0;
}

static uint64_t messages(uint64_t n)
{
	struct mmsghdr *m = take(n * sizeof(*m));

	for (uint64_t i = 0; i < n && (char *)(m + i + 1) <= end; i++)
		message(&m[i].msg_hdr);
	return pointer(m);
}

static uint64_t request_argument(uint64_t request)
{
	struct ifreq *r = take(sizeof(*r));

	if ((char *)(r + 1) > end)
		return pointer(r);
	strcpy(r->ifr_name, "lo");
	if (request == SIOCETHTOOL)
		r->ifr_data = (void *)(uintptr_t)pointer(take(SMALL));
	if (request == SIOCGIFCONF) {
		struct ifconf *c = (void *)r;

		c->ifc_len = (int)size();
		c->ifc_buf = (void *)(uintptr_t)pointer(take(SMALL));
	}
	return pointer(r);
}

static uint64_t option_value(void)
{
	struct sock_fprog *f = take(sizeof(*f));
	struct sock_filter *code;

	if (rng_one_in(rng, 2) || (char *)(f + 1) > end)
		return pointer(f);
	code = take(4 * sizeof(*code));
	f->len = (unsigned short)rng_below(rng, 8);
	f->filter = (void *)(uintptr_t)pointer(code);
	if ((char *)(code + 1) <= end)
		*code = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, ~0u);
	return pointer(f);
}

static uint64_t masked(void)
{
	uint64_t *mask = take(16);

	if ((char *)mask + 16 <= end) {
		mask[0] = pointer(take(8));
		mask[1] = 8;
	}
	return pointer(mask);
}

/* Times are short: long ones would only be waited for. */
static uint64_t memory(size_t unit, uint64_t count)
{
	uint64_t bytes = unit * count;
	uint64_t *got = take(bytes < 256 ? bytes : 256);

	if (unit == 1 && count >= 2 && rng_one_in(rng, 2))
		return name();
	for (size_t i = 0; (unit == 16 || unit == 32) && i < unit / 8; i++)
		if ((char *)(got + i + 1) <= end)
			got[i] = i % 2 ? rng_below(rng, 100000) : 0;
	return pointer(got);
}

static uint64_t string(void)
{
	char *s = take(SMALL);

	if (s + SMALL > end)
		return pointer(s);
	if (rng_one_in(rng, 8))
		memset(s, 'x', SMALL);
	else
		strcpy(s, rng_pick(rng, paths));
	return pointer(s);
}

static uint64_t value(void)
{
	static const uint64_t likely[] = { ~0ull, (uint32_t)-100, 0x40, 0x80000, 0x800, 1, 2 };

	return rng_one_in(rng, 6) ? rng_pick(rng, likely) : rng_below(rng, 20);
}

static void argument(uint64_t *arg, const struct guise_shape *shape, unsigned int i)
{
	const struct guise_shape_arg *a = &shape->arg[i];
	uint64_t count = a->count ? arg[a->count - 1] : 1;

	switch (a->what) {
	case GUISE_IN:
	case GUISE_OUT:
	case GUISE_BOTH:
	case GUISE_LEFT:
		arg[i] = memory(a->unit, count < 64 ? count : 64);
		break;
	case GUISE_STRING:
		arg[i] = string();
		break;
	case GUISE_DATA_IN:
	case GUISE_DATA_OUT:
	case GUISE_MEASURED:
		arg[i] = pointer(take(SMALL));
		break;
	case GUISE_MEASURE:
		arg[i] = pointer(take(8));
		break;
	default:
		break;
	}
}

static void nested(uint64_t *arg, const struct guise_shape *shape)
{
	switch (shape->nest) {
	case GUISE_NEST_IOV_IN:
	case GUISE_NEST_IOV_OUT:
		arg[1] = buffers(arg[2] < 8 ? arg[2] : 8);
		break;
	case GUISE_NEST_MSG_IN:
	case GUISE_NEST_MSG_OUT:
	case GUISE_NEST_MMSG_IN:
	case GUISE_NEST_MMSG_OUT:
		arg[1] = messages(arg[2] < 4 ? arg[2] + 1 : 4);
		break;
	case GUISE_NEST_IOCTL:
		arg[1] = rng_one_in(rng, 4) ? rng_next(rng) : rng_pick(rng, requests);
		arg[2] = request_argument(arg[1]);
		break;
	case GUISE_NEST_OPTION:
		arg[3] = option_value();
		break;
	case GUISE_NEST_PSELECT:
		arg[5] = masked();
		break;
	default:
		break;
	}
}

/* Numbers that are worth more than chance would give them. */
static void choose(uint64_t nr, uint64_t *arg)
{
	static const uint64_t families[] = { AF_INET, AF_INET,    AF_INET6,
					     AF_UNIX, AF_NETLINK, AF_PACKET };
	static const uint64_t types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
	static const uint64_t levels[] = { SOL_SOCKET,   IPPROTO_TCP, IPPROTO_IP,
					   IPPROTO_IPV6, 263,         270 };

	switch (nr) {
	case GUISE_NR_socket:
	case GUISE_NR_socketpair:
		arg[0] = rng_pick(rng, families);
		arg[1] = rng_pick(rng, types) | (rng_one_in(rng, 2) ? SOCK_NONBLOCK : 0);
		arg[2] = 0;
		break;
	case GUISE_NR_setsockopt:
	case GUISE_NR_getsockopt:
		arg[1] = rng_pick(rng, levels);
		arg[2] = rng_below(rng, 80);
		break;
	case GUISE_NR_unshare:
		arg[0] = rng_one_in(rng, 8) ? 0x40000000 : 0; /* CLONE_NEWNET */
		break;
	default:
		break;
	}
}

static uint64_t number(void)
{
	uint64_t nr;

	if (rng_one_in(rng, 12))
		return rng_pick(rng, members_only);
	if (rng_one_in(rng, 40))
		return rng_next(rng);
	do
		nr = rng_one_in(rng, 60) ? GUISE_NR_INODE : rng_below(rng, 512);
	while (!guise_shape_of(nr));
	return nr;
}

void served_call_make(struct rng *r, struct guise_lane *lane, char *room,
		      const struct served_targets *t)
{
	const struct guise_shape *shape;
	uint64_t nr, arg[6];

	rng = r;
	targets = t;
	at = room;
	end = room + SERVED_CALL_ROOM;
	words = 0;
	nr = number();
	shape = guise_shape_of(nr);
	for (unsigned int i = 0; i < 6; i++)
		arg[i] = shape && i && rng_one_in(rng, 3) ? size() : value();
	choose(nr, arg);
	if (shape) {
		for (unsigned int i = 0; i < 6; i++)
			argument(arg, shape, i);
		nested(arg, shape);
	}
	remember(&lane->nr, sizeof(lane->nr) + sizeof(lane->arg));
	lane->nr = nr;
	memcpy(lane->arg, arg, sizeof(arg));
}

uint64_t *served_call_word(struct rng *r)
{
	return word[rng_below(r, words)];
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Structures with pointers in them: lists of buffers, messages, options, requests of ioctl(2).
 *
 * ioctl(2) does not always say how long its argument is, nor whether it is a pointer. Where the
 * length is not known IOCTL bytes go with it, as far as they can be read. Only those that have
 * changed come back. The same is done for what the argument of SIOCETHTOOL points to.
 *
 * Limits: of the structures that point to others, those of packet filters, SIOCGIFCONF and
 * SIOCETHTOOL are known. What others point to gives EFAULT.
 */
#include "served/parcel.h"

#include "host/probe.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define IOCTL      256ul
#define ETHTOOL    16384ul
#define PAGE       4096ul
#define MESSAGES   64
#define MASK_BYTES 8

/* What the kernel writes into a field of a structure. */
#define FIELD_BACK(p, here, there, field) \
	guise_parcel_back(p, &(here)->field, &(there)->field, sizeof((here)->field), GUISE_BACK_ALL)

_Static_assert(GUISE_PARCEL_BACKS >= UIO_MAXIOV + 6, "one message fits, with all of its fields");

/* Bytes that the list has, without those to be skipped. */
static size_t bytes_of(const struct iovec *iov, unsigned int n, size_t skip)
{
	size_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum = iov[i].iov_len > INT_MAX - sum ? INT_MAX : sum + iov[i].iov_len;
	return sum > skip ? sum - skip : 0;
}

/* Makes one buffer there of all here; returns the list in the room. */
static struct iovec *list(struct guise_parcel *p, const struct iovec *iov, size_t n, bool out)
{
	struct iovec *there = guise_parcel_room(p, sizeof(*there));
	size_t left, skip = p->skip;
	char *at;

	if (!there)
		return NULL;
	if (n > UIO_MAXIOV || guise_readable(iov, n * sizeof(*iov))) {
		guise_parcel_fail(p, n > UIO_MAXIOV ? -EINVAL : -EFAULT);
		return NULL;
	}
	left = guise_parcel_piece(p, bytes_of(iov, (unsigned int)n, skip), out);
	at = guise_parcel_room(p, left);
	if (!at)
		return NULL;
	*there = (struct iovec){ at, left };
	for (size_t i = 0; i < n && left; i++) {
		size_t part = iov[i].iov_len, before = skip < part ? skip : part;
		char *here = (char *)iov[i].iov_base + before;

		skip -= before;
		part -= before;
		if (part > left)
			part = left;
		if (!part)
			continue;
		if (out ? guise_writable(here, part) : guise_readable(here, part)) {
			guise_parcel_fail(p, -EFAULT);
			return NULL;
		}
		if (!out)
			memcpy(at, here, part);
		else if (!guise_parcel_back(p, here, at, part, GUISE_BACK_RESULT))
			return NULL;
		at += part;
		left -= part;
	}
	return there;
}

void guise_nested_iov(struct guise_parcel *p, unsigned int arg, unsigned int count, bool out)
{
	const struct iovec *iov = (const void *)(uintptr_t)p->arg[arg];

	if ((int64_t)p->arg[count] <= 0) /* the kernel says what it is */
		return;
	p->arg[arg] = (uintptr_t)list(p, iov, p->arg[count], out);
	p->arg[count] = 1;
}

/* Fills `there` from a message here. */
static void message(struct guise_parcel *p, struct msghdr *here, struct msghdr *there, bool out)
{
	*there = (struct msghdr){ .msg_flags = here->msg_flags,
				  .msg_namelen = here->msg_namelen,
				  .msg_controllen = here->msg_controllen,
				  .msg_iovlen = here->msg_iovlen };
	if (here->msg_iovlen) {
		there->msg_iov = list(p, here->msg_iov, here->msg_iovlen, out);
		there->msg_iovlen = 1;
	}
	if (p->err)
		return;
	if (!out) {
		there->msg_name = guise_parcel_in(p, here->msg_name, here->msg_namelen);
		if (p->skip) /* it went with the first piece */
			there->msg_controllen = 0;
		else
			there->msg_control =
				guise_parcel_in(p, here->msg_control, here->msg_controllen);
		return;
	}
	there->msg_name =
		guise_parcel_used(p, here->msg_name, here->msg_namelen, &there->msg_namelen);
	there->msg_control = guise_parcel_used(p, here->msg_control, here->msg_controllen,
					       &there->msg_controllen);
	FIELD_BACK(p, here, there, msg_namelen);
	FIELD_BACK(p, here, there, msg_controllen);
	FIELD_BACK(p, here, there, msg_flags);
}

void guise_nested_msg(struct guise_parcel *p, unsigned int arg, bool out)
{
	struct msghdr *here = (void *)(uintptr_t)p->arg[arg], *there;

	if (guise_readable(here, sizeof(*here))) {
		guise_parcel_fail(p, -EFAULT);
		return;
	}
	there = guise_parcel_room(p, sizeof(*there));
	if (!there)
		return;
	message(p, here, there, out);
	p->arg[arg] = (uintptr_t)there;
}

/* As many messages as fit: fewer than there are is an answer, too. */
void guise_nested_mmsg(struct guise_parcel *p, unsigned int arg, unsigned int count, bool out)
{
	struct mmsghdr *here = (void *)(uintptr_t)p->arg[arg], *there;
	uint64_t n = p->arg[count] & UINT32_MAX;

	if (n > MESSAGES)
		n = MESSAGES;
	if (!n)
		return;
	if (guise_readable(here, n * sizeof(*here))) {
		guise_parcel_fail(p, -EFAULT);
		return;
	}
	there = guise_parcel_room(p, n * sizeof(*there));
	for (uint64_t i = 0; i < n && !p->err; i++) {
		size_t used = p->used;
		unsigned int backs = p->backs;

		message(p, &here[i].msg_hdr, &there[i].msg_hdr, out);
		there[i].msg_len = here[i].msg_len;
		FIELD_BACK(p, &here[i], &there[i], msg_len);
		if (!p->err) {
			/* The result counts messages: each has its own number of bytes. */
			for (size_t before = 0; backs < p->backs; backs++) {
				struct guise_back *b = &p->back[backs];

				if (b->how != GUISE_BACK_RESULT)
					continue;
				b->how = GUISE_BACK_LENGTH;
				b->length = &there[i].msg_len;
				b->before = before;
				before += b->bytes;
			}
			continue;
		}
		if (i && p->err != -EFAULT) { /* the rest does not fit any more */
			p->err = 0;
			p->used = used;
			p->backs = backs;
			n = i;
		}
	}
	p->arg[arg] = (uintptr_t)there;
	p->arg[count] = n;
}

/* How many bytes a request's argument has; more, where that is not known. */
static size_t ioctl_bytes(uint64_t request)
{
	if (request == SIOCGIFCONF)
		return sizeof(struct ifconf);
	if (request == SIOCADDRT || request == SIOCDELRT)
		return sizeof(struct rtentry);
	if (request >= SIOCDARP && request <= SIOCSARP)
		return sizeof(struct arpreq);
	/* Of an interface; those of a tun have 'T' and the length of an int in them. */
	if ((request >= SIOCGIFNAME && request < 0x8a00) ||
	    (_IOC_TYPE(request) == 'T' && _IOC_NR(request) >= 200))
		return sizeof(struct ifreq);
	if (request == FIONREAD || request == FIONBIO || request == TIOCOUTQ ||
	    (request >= FIOSETOWN && request <= SIOCATMARK))
		return sizeof(int);
	return _IOC_DIR(request) && _IOC_SIZE(request) ? _IOC_SIZE(request) : IOCTL;
}

/* How many of so many bytes can be read from here. */
static size_t readable(const char *from, size_t bytes)
{
	size_t n = 0;

	while (n < bytes && !guise_readable(from + n, 1))
		n += PAGE - ((uintptr_t)(from + n) & (PAGE - 1));
	return n < bytes ? n : bytes;
}

void guise_nested_ioctl(struct guise_parcel *p)
{
	char *here = (char *)(uintptr_t)p->arg[2], *there;
	size_t bytes = readable(here, ioctl_bytes(p->arg[1]));

	if (!bytes) /* a number, or a bad pointer: the kernel knows */
		return;
	there = guise_parcel_both(p, here, bytes, GUISE_BACK_CHANGED);
	if (!there)
		return;
	p->arg[2] = (uintptr_t)there;
	if (p->arg[1] == SIOCGIFCONF && bytes >= sizeof(struct ifconf)) {
		struct ifconf *c = (void *)there;

		if (!c->ifc_buf || c->ifc_len < 0)
			return;
		c->ifc_buf = guise_parcel_used(p, c->ifc_buf, (size_t)c->ifc_len, &c->ifc_len);
	} else if (p->arg[1] == SIOCETHTOOL && bytes >= sizeof(struct ifreq)) {
		struct ifreq *r = (void *)there;

		bytes = readable(r->ifr_data, ETHTOOL);
		r->ifr_data = bytes ? guise_parcel_both(p, r->ifr_data, bytes, GUISE_BACK_CHANGED)
				    : NULL;
		if (!bytes)
			guise_parcel_fail(p, -EFAULT);
	} else {
		return;
	}
	/* The pointer in it is not the program's, and must not come back. */
	memcpy(there + p->back[0].bytes, there, p->back[0].bytes);
}

void guise_nested_option(struct guise_parcel *p)
{
	struct sock_fprog *f = (void *)(uintptr_t)p->arg[3];

	/* It lies in the region, and of rings to receive alone there are copies (mirror.c). */
	if (p->arg[1] == SOL_PACKET && p->arg[2] == PACKET_TX_RING)
		guise_parcel_fail(p, -ENOPROTOOPT);

	if (p->arg[1] != SOL_SOCKET || p->arg[4] < sizeof(*f) || !f ||
	    (p->arg[2] != SO_ATTACH_FILTER && p->arg[2] != SO_ATTACH_REUSEPORT_CBPF))
		return;
	f->filter = guise_parcel_in(p, f->filter, f->len * sizeof(*f->filter));
}

/* pselect6: three sets of n bits, and a pointer to a mask with its length. */
void guise_nested_pselect(struct guise_parcel *p)
{
	const uint64_t *here = (const void *)(uintptr_t)p->arg[5];
	int n = (int)p->arg[0];
	size_t bytes;
	uint64_t *there;

	if (n < 0)
		return;
	bytes = ((size_t)n + 63) / 64 * 8;
	for (int i = 1; i <= 3; i++)
		p->arg[i] = (uintptr_t)guise_parcel_both(p, (void *)(uintptr_t)p->arg[i], bytes,
							 GUISE_BACK_ALL);
	there = guise_parcel_in(p, here, 2 * sizeof(*here));
	if (there && there[0]) {
		const void *mask = (const void *)(uintptr_t)there[0];

		there[0] = (uintptr_t)guise_parcel_in(p, mask, MASK_BYTES);
	}
	p->arg[5] = (uintptr_t)there;
}

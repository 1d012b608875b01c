// SPDX-License-Identifier: GPL-2.0-only
/* See parcel.h. */
#include "served/parcel.h"

#include "host/probe.h"
#include "served/shapes.h"

#include <errno.h>
#include <string.h>

#define ALIGN    16ul
#define STRINGS  4096ul /* the longest string, as PATH_MAX */
#define MEASURED 65536u /* no option and no address is longer */

void guise_parcel_fail(struct guise_parcel *p, int err)
{
	if (!p->err)
		p->err = err;
}

void *guise_parcel_room(struct guise_parcel *p, size_t bytes)
{
	char *at = p->room + p->used;

	if (bytes > p->size - p->used) {
		guise_parcel_fail(p, -ENOBUFS);
		return NULL;
	}
	p->used += (bytes + ALIGN - 1) & ~(ALIGN - 1);
	if (p->used > p->size)
		p->used = p->size;
	return at;
}

void *guise_parcel_in(struct guise_parcel *p, const void *from, size_t bytes)
{
	void *at = from ? guise_parcel_room(p, bytes) : NULL;

	if (!at)
		return NULL;
	if (guise_readable(from, bytes)) {
		guise_parcel_fail(p, -EFAULT);
		return NULL;
	}
	memcpy(at, from, bytes);
	return at;
}

struct guise_back *guise_parcel_back(struct guise_parcel *p, void *to, const void *from,
				     size_t bytes, enum guise_back_how how)
{
	if (p->backs == GUISE_PARCEL_BACKS) {
		guise_parcel_fail(p, -EMSGSIZE);
		return NULL;
	}
	p->back[p->backs] = (struct guise_back){ to, from, bytes, (uint8_t)how, 1, NULL, 0 };
	return &p->back[p->backs++];
}

void *guise_parcel_out(struct guise_parcel *p, void *to, size_t bytes, enum guise_back_how how)
{
	void *at = to ? guise_parcel_room(p, bytes) : NULL;

	return at && guise_parcel_back(p, to, at, bytes, how) ? at : NULL;
}

void *guise_parcel_used(struct guise_parcel *p, void *to, size_t bytes, const void *length)
{
	void *at = guise_parcel_out(p, to, bytes, GUISE_BACK_LENGTH);

	if (at)
		p->back[p->backs - 1].length = length;
	return at;
}

/* Perhaps more bytes than the program has meant: no checker is to look at them. */
__attribute__((no_sanitize("address", "thread"),
	       optimize("no-tree-loop-distribute-patterns"))) static void
copy_unchecked(char *to, const char *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
}

void *guise_parcel_both(struct guise_parcel *p, void *memory, size_t bytes, enum guise_back_how how)
{
	size_t room = how == GUISE_BACK_CHANGED ? 2 * bytes : bytes;
	char *at = memory ? guise_parcel_room(p, room) : NULL;

	if (!at || !guise_parcel_back(p, memory, at, bytes, how))
		return NULL;
	if (guise_readable(memory, bytes)) {
		guise_parcel_fail(p, -EFAULT);
		return NULL;
	}
	copy_unchecked(at, memory, bytes);
	if (how == GUISE_BACK_CHANGED)
		memcpy(at + bytes, at, bytes);
	return at;
}

void *guise_parcel_measured(struct guise_parcel *p, void *to, void *length, void **length_there,
			    bool in)
{
	uint32_t *there = guise_parcel_both(p, length, sizeof(*there), GUISE_BACK_ALL);
	uint32_t bytes;
	void *at;

	*length_there = there;
	if (!there || !to)
		return NULL;
	/* A negative one is the kernel's to refuse. */
	bytes = *there > MEASURED ? MEASURED : *there;
	if (*there > MEASURED && *there <= INT32_MAX)
		*there = MEASURED;
	at = in && !guise_readable(to, bytes) ? guise_parcel_both(p, to, bytes, GUISE_BACK_LENGTH)
					      : guise_parcel_out(p, to, bytes, GUISE_BACK_LENGTH);
	if (at)
		p->back[p->backs - 1].length = there;
	return at;
}

static void *string(struct guise_parcel *p, const char *from)
{
	size_t n = 0;

	if (!from)
		return NULL;
	while (n < STRINGS) {
		/* Page by page: what follows the string may not be there. */
		if ((!n || !((uintptr_t)(from + n) & 4095)) && guise_readable(from + n, 1)) {
			guise_parcel_fail(p, -EFAULT);
			return NULL;
		}
		if (!from[n++])
			return guise_parcel_in(p, from, n);
	}
	guise_parcel_fail(p, -ENAMETOOLONG);
	return NULL;
}

/* To get less than there is room for is a transfer's right. */
size_t guise_parcel_piece(struct guise_parcel *p, size_t bytes, bool out)
{
	if (bytes > GUISE_PARCEL_PIECE && (p->piecemeal || out)) {
		p->more = true;
		bytes = GUISE_PARCEL_PIECE;
	}
	p->data = bytes;
	return bytes;
}

/* The data of a transfer: what is left of it, or a piece. */
static uint64_t data(struct guise_parcel *p, const struct guise_shape_arg *a, uint64_t at,
		     uint64_t *count)
{
	size_t bytes = *count > INT32_MAX ? INT32_MAX : *count; /* as Linux's MAX_RW_COUNT, about */
	bool out = a->what == GUISE_DATA_OUT;
	char *memory = (char *)(uintptr_t)at + p->skip;
	void *there;

	if (a->unit != 1) {
		/* Fewer events than there is room for are an answer, too. */
		if (bytes > GUISE_PARCEL_PIECE / a->unit)
			*count = bytes = GUISE_PARCEL_PIECE / a->unit;
		bytes *= a->unit;
	} else {
		*count = bytes = guise_parcel_piece(p, bytes - p->skip, out);
	}
	if (!at)
		return 0;
	/* Bytes that cannot be stored stay where they are. */
	if (out && a->unit == 1 && guise_writable(memory, bytes)) {
		guise_parcel_fail(p, -EFAULT);
		return 0;
	}
	there = out ? guise_parcel_out(p, memory, bytes, GUISE_BACK_RESULT)
		    : guise_parcel_in(p, memory, bytes);
	if (there && out)
		p->back[p->backs - 1].unit = (uint8_t)a->unit;
	return (uintptr_t)there;
}

static void pack_flat(struct guise_parcel *p, const struct guise_shape *shape)
{
	uint64_t given[6];

	memcpy(given, p->arg, sizeof(given));
	for (unsigned int i = 0; i < 6 && !p->err; i++) {
		const struct guise_shape_arg *a = &shape->arg[i];
		uint64_t count = a->count ? given[a->count - 1] : 1;
		void *at = (void *)(uintptr_t)given[i], *there = NULL, *length;

		if (a->what == GUISE_VALUE || a->what == GUISE_MEASURE)
			continue;
		if (a->what == GUISE_DATA_IN || a->what == GUISE_DATA_OUT) {
			if (a->unit == 1 || (int32_t)count > 0) /* or the kernel refuses it */
				p->arg[i] = data(p, a, given[i], &count);
			p->arg[a->count - 1] = count;
			continue;
		}
		if (a->what != GUISE_MEASURED && count > p->size / (a->unit ? a->unit : 1)) {
			guise_parcel_fail(p, -EINVAL);
			break;
		}
		switch (a->what) {
		case GUISE_IN:
			there = guise_parcel_in(p, at, count * a->unit);
			break;
		case GUISE_OUT:
			there = guise_parcel_out(p, at, count * a->unit, GUISE_BACK_ALL);
			break;
		case GUISE_BOTH:
			there = guise_parcel_both(p, at, count * a->unit, GUISE_BACK_ALL);
			break;
		case GUISE_LEFT:
			there = guise_parcel_both(p, at, count * a->unit, GUISE_BACK_ALWAYS);
			break;
		case GUISE_STRING:
			there = string(p, at);
			break;
		case GUISE_MEASURED:
			there = guise_parcel_measured(p, at, (void *)(uintptr_t)given[i + 1],
						      &length, a->count);
			p->arg[i + 1] = (uintptr_t)length;
			break;
		}
		p->arg[i] = (uintptr_t)there;
	}
}

int guise_parcel_pack(struct guise_parcel *p, void *room, size_t size, uint64_t nr,
		      const uint64_t arg[6], size_t skip, bool piecemeal)
{
	const struct guise_shape *shape = guise_shape_of(nr);

	p->room = room;
	p->size = size;
	p->used = p->data = 0;
	p->backs = 0;
	p->err = shape ? 0 : -ENOSYS;
	p->skip = skip;
	p->piecemeal = piecemeal;
	p->more = false;
	memcpy(p->arg, arg, sizeof(p->arg));
	if (!shape)
		return p->err;
	pack_flat(p, shape);
	if (p->err)
		return p->err;
	switch (shape->nest) {
	case GUISE_NEST_IOV_IN:
	case GUISE_NEST_IOV_OUT:
		guise_nested_iov(p, 1, 2, shape->nest == GUISE_NEST_IOV_OUT);
		break;
	case GUISE_NEST_MSG_IN:
	case GUISE_NEST_MSG_OUT:
		guise_nested_msg(p, 1, shape->nest == GUISE_NEST_MSG_OUT);
		break;
	case GUISE_NEST_MMSG_IN:
	case GUISE_NEST_MMSG_OUT:
		guise_nested_mmsg(p, 1, 2, shape->nest == GUISE_NEST_MMSG_OUT);
		break;
	case GUISE_NEST_IOCTL:
		guise_nested_ioctl(p);
		break;
	case GUISE_NEST_OPTION:
		guise_nested_option(p);
		break;
	case GUISE_NEST_PSELECT:
		guise_nested_pselect(p);
		break;
	}
	return p->err;
}

static int copy_back(const struct guise_back *b, size_t bytes)
{
	char *to = b->to;

	if (b->how == GUISE_BACK_CHANGED) {
		for (size_t i = 0; i < bytes; i++) {
			if (b->from[i] == b->from[b->bytes + i])
				continue;
			if (guise_writable(to + i, 1))
				return -EFAULT;
			to[i] = b->from[i];
		}
		return 0;
	}
	if (guise_writable(to, bytes))
		return -EFAULT;
	memcpy(to, b->from, bytes);
	return 0;
}

int guise_parcel_unpack(struct guise_parcel *p, int64_t result)
{
	size_t left = result > 0 ? (size_t)result : 0, bytes;
	int err = 0;

	for (unsigned int i = 0; i < p->backs && !err; i++) {
		const struct guise_back *b = &p->back[i];

		if (result < 0 && b->how != GUISE_BACK_ALWAYS && b->how != GUISE_BACK_CHANGED)
			continue;
		bytes = b->bytes;
		if (b->how == GUISE_BACK_RESULT) {
			if (left * b->unit < bytes)
				bytes = left * b->unit;
			left -= bytes / b->unit;
		} else if (b->how == GUISE_BACK_LENGTH) {
			size_t there = *b->length > b->before ? *b->length - b->before : 0;

			bytes = there < bytes ? there : bytes;
		}
		err = copy_back(b, bytes);
	}
	return err;
}

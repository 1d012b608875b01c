/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arguments of one call on their way to a servant and back. A parcel is packed into a lane's
 * room: what the call reads is copied there, for what it writes there is room, and the pointers
 * among the arguments become addresses of the room. After the call it is unpacked: what was
 * written is copied to where the program wanted it.
 *
 * Which argument of which call is a pointer, and to how much, is in one table, shapes.c;
 * structures that have pointers in them are packed by nested.c.
 *
 * Limits: a call carries 1 MiB at most, and 64 messages with GUISE_PARCEL_BACKS buffers. Of a
 * transfer over a stream at most GUISE_PARCEL_PIECE bytes go at once, and the caller repeats it
 * with more of them skipped.
 */
#ifndef GUISE_SERVED_PARCEL_H
#define GUISE_SERVED_PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUISE_PARCEL_PIECE (128ul << 10)
#define GUISE_PARCEL_BACKS (1024 + 6) /* the most buffers of a message, and its own fields */

/* Something to be copied to the program after the call. */
struct guise_back {
	void *to;
	const char *from;
	size_t bytes;
	uint8_t how;            /* enum guise_back_how */
	uint8_t unit;           /* GUISE_BACK_RESULT: bytes of each that the result counts */
	const uint32_t *length; /* GUISE_BACK_LENGTH: how many bytes are there, ... */
	size_t before;          /* ... of which so many are before these */
};

enum guise_back_how {
	GUISE_BACK_ALL,     /* if the call succeeded */
	GUISE_BACK_ALWAYS,  /* what is left of a time, after EINTR too */
	GUISE_BACK_RESULT,  /* as many as the result says, in this and those that follow it */
	GUISE_BACK_LENGTH,  /* as many as another word says */
	GUISE_BACK_CHANGED, /* only bytes that are others than before; its room is twice as long */
};

struct guise_parcel {
	uint64_t arg[6]; /* for the servant */
	char *room;
	size_t used, size;
	unsigned int backs;
	struct guise_back back[GUISE_PARCEL_BACKS];
	int err;        /* the first thing that went wrong: -EFAULT, -EINVAL, -ENOBUFS */
	size_t skip;    /* bytes of data that went before */
	size_t data;    /* bytes of data that go, or may come */
	bool piecemeal; /* the data may go in pieces */
	bool more;      /* there is more than that */
};

/*
 * Packs the call into room, of `size` bytes. skip: bytes of its data that were transferred by
 * calls before. piecemeal: more data than fits may go in pieces (a stream). 0, or -errno:
 * EFAULT for a bad pointer, ENOBUFS where it does not fit, ENOSYS for a call that is not
 * for served programs.
 */
int guise_parcel_pack(struct guise_parcel *p, void *room, size_t size, uint64_t nr,
		      const uint64_t arg[6], size_t skip, bool piecemeal);

/* After the call: 0 or -EFAULT. */
int guise_parcel_unpack(struct guise_parcel *p, int64_t result);

/* The parts, for nested.c. */
void guise_parcel_fail(struct guise_parcel *p, int err);
/* How many of so many bytes of data go in this call, or may come. */
size_t guise_parcel_piece(struct guise_parcel *p, size_t bytes, bool out);
/* What is at `from` in the room is to be copied to the program; NULL on failure. */
struct guise_back *guise_parcel_back(struct guise_parcel *p, void *to, const void *from,
				     size_t bytes, enum guise_back_how how);
/* These give the address in the room; NULL on failure, or for NULL. */
void *guise_parcel_room(struct guise_parcel *p, size_t bytes);
void *guise_parcel_in(struct guise_parcel *p, const void *from, size_t bytes);
void *guise_parcel_out(struct guise_parcel *p, void *to, size_t bytes, enum guise_back_how how);
void *guise_parcel_both(struct guise_parcel *p, void *memory, size_t bytes,
			enum guise_back_how how);
/* A buffer of which a word there says after the call how many bytes are used. */
void *guise_parcel_used(struct guise_parcel *p, void *to, size_t bytes, const void *length);
/* A buffer whose length a word says before and after the call, for example an address. */
void *guise_parcel_measured(struct guise_parcel *p, void *to, void *length, void **length_there,
			    bool in);

/* nested.c */
void guise_nested_iov(struct guise_parcel *p, unsigned int arg, unsigned int count, bool out);
void guise_nested_msg(struct guise_parcel *p, unsigned int arg, bool out);
void guise_nested_mmsg(struct guise_parcel *p, unsigned int arg, unsigned int count, bool out);
void guise_nested_ioctl(struct guise_parcel *p);
void guise_nested_option(struct guise_parcel *p);
void guise_nested_pselect(struct guise_parcel *p);

#endif

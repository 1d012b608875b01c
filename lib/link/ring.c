// SPDX-License-Identifier: GPL-2.0-only
/* The ring of a pair link; ring.h has the theory. */
#include "link/ring.h"
#include "link/frame.h"

#include <errno.h>
#include <string.h>

#define RECORD_HDR sizeof(uint64_t)

static uint64_t record_size(uint64_t len)
{
	return RECORD_HDR + ((len + 7) & ~7ULL);
}

static uint64_t iov_total(const struct guise_iov *iov, uint32_t n)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < n; i++)
		total += iov[i].len;
	return total;
}

static void copy_in(struct guise_ring *r, uint64_t pos, const void *from, uint64_t len)
{
	uint64_t at = pos % GUISE_RING_BYTES;
	uint64_t first = len < GUISE_RING_BYTES - at ? len : GUISE_RING_BYTES - at;

	memcpy(r->data + at, from, first);
	memcpy(r->data, (const uint8_t *)from + first, len - first);
}

static void copy_out(struct guise_ring *r, uint64_t pos, void *to, uint64_t len)
{
	uint64_t at = pos % GUISE_RING_BYTES;
	uint64_t first = len < GUISE_RING_BYTES - at ? len : GUISE_RING_BYTES - at;

	memcpy(to, r->data + at, first);
	memcpy((uint8_t *)to + first, r->data, len - first);
}

static bool has_room(struct guise_ring *r, uint64_t need)
{
	uint64_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);

	/* Wrong positions by the consumer can only have the effect that there is no room. */
	return r->head - tail <= GUISE_RING_BYTES - need;
}

int64_t guise_ring_put(struct guise_ring *r, const struct guise_iov *iov, uint32_t n)
{
	uint64_t len = iov_total(iov, n), pos = r->head;

	if (!len || len > GUISE_FRAME_MAX)
		return -EMSGSIZE;
	if (!has_room(r, record_size(len))) {
		__atomic_store_n(&r->full, GUISE_FULL_WAITS, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!has_room(r, record_size(len)))
			return -EAGAIN;
		__atomic_store_n(&r->full, GUISE_FULL_NO, __ATOMIC_SEQ_CST);
	}
	copy_in(r, pos, &len, RECORD_HDR);
	pos += RECORD_HDR;
	for (uint32_t i = 0; i < n; i++) {
		copy_in(r, pos, iov[i].base, iov[i].len);
		pos += iov[i].len;
	}
	__atomic_store_n(&r->head, r->head + record_size(len), __ATOMIC_RELEASE);
	return (int64_t)len;
}

int64_t guise_ring_get(struct guise_ring *r, const struct guise_iov *iov, uint32_t n)
{
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
	uint64_t pos = r->tail, have = head - pos, len, left;

	if (!have)
		return -EAGAIN;
	/* Frames come in bursts: while this end looks by itself, the bell need not be rung. */
	if (__atomic_load_n(&r->bell, __ATOMIC_RELAXED) == GUISE_BELL_ASLEEP) {
		uint32_t asleep = GUISE_BELL_ASLEEP;

		__atomic_compare_exchange_n(&r->bell, &asleep, GUISE_BELL_AWAKE, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
	if (have > GUISE_RING_BYTES || have < RECORD_HDR)
		goto nonsense;
	copy_out(r, pos, &len, RECORD_HDR);
	if (!len || len > GUISE_FRAME_MAX || record_size(len) > have)
		goto nonsense;

	left = len;
	pos += RECORD_HDR;
	for (uint32_t i = 0; i < n && left; i++) {
		uint64_t part = left < iov[i].len ? left : iov[i].len;

		copy_out(r, pos, iov[i].base, part);
		pos += part;
		left -= part;
	}
	__atomic_store_n(&r->tail, r->tail + record_size(len), __ATOMIC_RELEASE);
	return left ? -EMSGSIZE : (int64_t)len;

nonsense:
	__atomic_store_n(&r->tail, head, __ATOMIC_RELEASE);
	return -EBADMSG;
}

bool guise_ring_must_wake(struct guise_ring *r)
{
	uint32_t asleep = GUISE_BELL_ASLEEP;

	/* Orders the store of head before the load of bell. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&r->bell, __ATOMIC_RELAXED) == GUISE_BELL_ASLEEP &&
	       __atomic_compare_exchange_n(&r->bell, &asleep, GUISE_BELL_RUNG, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

bool guise_ring_sleep(struct guise_ring *r)
{
	uint32_t awake = GUISE_BELL_AWAKE;

	/* If it is RUNG already, that stays: the caller will be woken by it. */
	__atomic_compare_exchange_n(&r->bell, &awake, GUISE_BELL_ASLEEP, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) != r->tail;
}

bool guise_ring_freed(struct guise_ring *r)
{
	uint32_t waits = GUISE_FULL_WAITS;
	uint64_t used;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->full, __ATOMIC_RELAXED) != GUISE_FULL_WAITS)
		return false;
	/* When half of the ring is free: not a wake-up for every frame. */
	used = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) - r->tail;
	return used <= GUISE_RING_BYTES / 2 &&
	       __atomic_compare_exchange_n(&r->full, &waits, GUISE_FULL_FREED, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

bool guise_ring_resume(struct guise_ring *r)
{
	uint32_t freed = GUISE_FULL_FREED;

	return __atomic_load_n(&r->full, __ATOMIC_RELAXED) == GUISE_FULL_FREED &&
	       __atomic_compare_exchange_n(&r->full, &freed, GUISE_FULL_NO, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

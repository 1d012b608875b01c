// SPDX-License-Identifier: GPL-2.0-only
/*
 * POSIX AIO. In a program on a stack all of it is done here, also for the host's
 * descriptors, because a list may have both kinds.
 *
 * A request begins at once, on a thread of its own, unless another request for the same
 * descriptor is in progress or there are as many threads as libc would have. In these cases
 * it waits in a queue. A thread that has done its request takes the first one in the
 * queue whose descriptor is free, and ends if there is none. So the requests for one
 * descriptor are done one after the other, those of a higher priority first. The result of
 * a request stands in the fields in which libc keeps it: aio_error() and aio_return() are
 * libc's own.
 *
 * A request's position is used if the descriptor has positions.
 */
#include "preload/wait/completion.h"
#include "preload/preload.h"

#include <aio.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define THREADS   20
#define PRIO_MOST 20 /* AIO_PRIO_DELTA_MAX */
#define OP_FSYNC  100
#define OP_FDSYNC 101

/* A list of lio_listio() that nobody waits for. */
struct list {
	int left;
	struct sigevent event;
};

struct request {
	struct request *next;
	struct aiocb64 *cb;
	struct list *list; /* that is told of as a whole */
	int op, fd, thread;
};

static struct request *queue;
/* What each thread works on. */
static struct {
	bool busy;
	int fd;
} threads[THREADS];

_Static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64) &&
		       offsetof(struct aiocb, aio_offset) == offsetof(struct aiocb64, aio_offset),
	       "aio_read and aio_read64 are one");

static ssize_t carry_out(const struct request *r)
{
	struct aiocb64 *cb = r->cb;
	void *buf = (void *)cb->aio_buf;
	ssize_t n;

	switch (r->op) {
	case LIO_READ:
		n = pread64(r->fd, buf, cb->aio_nbytes, cb->aio_offset);
		return n < 0 && errno == ESPIPE ? read(r->fd, buf, cb->aio_nbytes) : n;
	case LIO_WRITE:
		n = pwrite64(r->fd, buf, cb->aio_nbytes, cb->aio_offset);
		return n < 0 && errno == ESPIPE ? write(r->fd, buf, cb->aio_nbytes) : n;
	case OP_FSYNC:
		return fsync(r->fd);
	case OP_FDSYNC:
		return fdatasync(r->fd);
	default:
		errno = EINVAL;
		return -1;
	}
}

static void list_has_one_less(struct list *list)
{
	if (list && !--list->left) {
		completion_notify(&list->event, SI_ASYNCIO);
		free(list);
	}
}

/* The program may free cb as soon as it has its result. */
static void finish(struct request *r, ssize_t n, int err)
{
	struct sigevent event = r->cb->aio_sigevent;
	struct list *list = r->list;

	r->cb->__return_value = n;
	__atomic_store_n(&r->cb->__error_code, err, __ATOMIC_RELEASE);
	free(r);
	completion_notify(&event, SI_ASYNCIO);
	list_has_one_less(list);
	completion_tell();
}

static bool is_busy(int fd)
{
	for (int i = 0; i < THREADS; i++)
		if (threads[i].busy && threads[i].fd == fd)
			return true;
	return false;
}

static void begin(struct request *r, int thread)
{
	threads[thread].busy = true;
	threads[thread].fd = r->fd;
	r->thread = thread;
}

static struct request *take(void)
{
	for (struct request **at = &queue, *r; (r = *at); at = &r->next)
		if (!is_busy(r->fd)) {
			*at = r->next;
			return r;
		}
	return NULL;
}

static void *work(void *memory)
{
	struct request *r = memory;
	ssize_t n;
	int i, err;

	do {
		n = carry_out(r);
		err = n < 0 ? errno : 0;
		completion_lock();
		i = r->thread;
		threads[i].busy = false;
		finish(r, n, err);
		r = take();
		if (r)
			begin(r, i);
		completion_unlock();
	} while (r);
	return NULL;
}

/* 0; EBUSY: threads will take it from the queue; or there is none and can be none. */
static int start(struct request *r)
{
	int err, free_thread = -1, others = 0;

	for (int i = 0; i < THREADS; i++) {
		if (threads[i].busy)
			others++;
		else
			free_thread = i;
	}
	if (free_thread < 0)
		return EBUSY;
	begin(r, free_thread);
	err = completion_thread(work, r, NULL);
	if (err)
		threads[free_thread].busy = false;
	return err && others ? EBUSY : err;
}

/* Behind those of the descriptor that are as urgent. */
static void enter(struct request *new)
{
	struct request **at = &queue;

	while (*at && ((*at)->fd != new->fd || (*at)->cb->aio_reqprio <= new->cb->aio_reqprio))
		at = &(*at)->next;
	new->next = *at;
	*at = new;
}

static int refuse(struct aiocb64 *cb, int err)
{
	cb->__error_code = err;
	cb->__return_value = -1;
	errno = err;
	return -1;
}

/* Under the lock. */
static int ask(struct aiocb64 *cb, int op, struct list *list)
{
	struct request *r;
	int err;

	if (cb->aio_reqprio < 0 || cb->aio_reqprio > PRIO_MOST)
		return refuse(cb, EINVAL);
	r = malloc(sizeof(*r));
	if (!r)
		return refuse(cb, EAGAIN);
	*r = (struct request){ .cb = cb, .list = list, .op = op, .fd = cb->aio_fildes };
	cb->__return_value = 0;
	cb->__error_code = EINPROGRESS;
	if (is_busy(r->fd)) {
		enter(r);
	} else if ((err = start(r))) {
		if (err != EBUSY) {
			free(r);
			return refuse(cb, EAGAIN);
		}
		enter(r);
	}
	return 0;
}

static int ask_one(struct aiocb *cb, int op)
{
	int ret;

	completion_lock();
	ret = ask((struct aiocb64 *)cb, op, NULL);
	completion_unlock();
	return ret;
}

HOOK int aio_read(struct aiocb *cb)
{
	return preload_on_stack() ? ask_one(cb, LIO_READ) : HOST(aio_read)(cb);
}

HOOK int aio_write(struct aiocb *cb)
{
	return preload_on_stack() ? ask_one(cb, LIO_WRITE) : HOST(aio_write)(cb);
}

HOOK int aio_fsync(int op, struct aiocb *cb)
{
	if (!preload_on_stack())
		return HOST(aio_fsync)(op, cb);
	if (op != O_SYNC && op != O_DSYNC) {
		errno = EINVAL;
		return -1;
	}
	if (fcntl(cb->aio_fildes, F_GETFL) < 0) {
		errno = EBADF;
		return -1;
	}
	cb->aio_reqprio = 0;
	return ask_one(cb, op == O_SYNC ? OP_FSYNC : OP_FDSYNC);
}

static bool in_progress(const void *request)
{
	const struct aiocb *cb = request;

	return cb && cb->aio_lio_opcode != LIO_NOP &&
	       __atomic_load_n(&cb->__error_code, __ATOMIC_ACQUIRE) == EINPROGRESS;
}

static bool any_done(const void *const list[], int n)
{
	bool any = false;

	for (int i = 0; i < n; i++) {
		const struct aiocb *cb = list[i];

		if (cb && __atomic_load_n(&cb->__error_code, __ATOMIC_ACQUIRE) != EINPROGRESS)
			return true;
		any |= !!cb;
	}
	return !any;
}

static bool all_done(const void *const list[], int n)
{
	for (int i = 0; i < n; i++)
		if (in_progress(list[i]))
			return false;
	return true;
}

HOOK int aio_suspend(const struct aiocb *const list[], int n, const struct timespec *timeout)
{
	int err;

	if (!preload_on_stack())
		return HOST(aio_suspend)(list, n, timeout);
	if (n < 0) {
		errno = EINVAL;
		return -1;
	}
	completion_lock();
	err = completion_wait(any_done, (const void *const *)list, n, timeout);
	completion_unlock();
	if (!err)
		return 0;
	errno = err == ETIMEDOUT ? EAGAIN : err;
	return -1;
}

/* Those that no thread has begun with: how many. */
static int drop(int fd, const struct aiocb *cb)
{
	struct request **at = &queue, *r;
	int n = 0;

	while ((r = *at)) {
		if (r->fd != fd || (cb && (const void *)r->cb != cb)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		finish(r, -1, ECANCELED);
		n++;
	}
	return n;
}

HOOK int aio_cancel(int fd, struct aiocb *cb)
{
	int ret = AIO_ALLDONE;

	if (!preload_on_stack())
		return HOST(aio_cancel)(fd, cb);
	if (fcntl(fd, F_GETFL) < 0) {
		errno = EBADF;
		return -1;
	}
	if (cb && cb->aio_fildes != fd) {
		errno = EINVAL;
		return -1;
	}
	completion_lock();
	if (drop(fd, cb))
		ret = AIO_CANCELED;
	if (cb ? cb->__error_code == EINPROGRESS : is_busy(fd))
		ret = AIO_NOTCANCELED;
	completion_unlock();
	return ret;
}

HOOK int lio_listio(int mode, struct aiocb *const list[], int n, struct sigevent *event)
{
	struct list *whole = NULL;
	int asked = 0, refused = 0, failed = 0, state;

	if (!preload_on_stack())
		return HOST(lio_listio)(mode, list, n, event);
	if ((mode != LIO_WAIT && mode != LIO_NOWAIT) || n < 0) {
		errno = EINVAL;
		return -1;
	}
	if (mode == LIO_NOWAIT) {
		whole = malloc(sizeof(*whole));
		if (!whole) {
			errno = EAGAIN;
			return -1;
		}
		*whole = (struct list){ .left = 1, .event.sigev_notify = SIGEV_NONE };
		if (event)
			whole->event = *event;
	}
	completion_lock();
	for (int i = 0; i < n; i++) {
		struct aiocb64 *cb = (struct aiocb64 *)list[i];

		if (!cb || cb->aio_lio_opcode == LIO_NOP)
			continue;
		if (ask(cb, cb->aio_lio_opcode, whole)) {
			refused = errno;
			continue;
		}
		asked++;
		if (whole)
			whole->left++;
	}
	if (whole) {
		list_has_one_less(whole);
	} else {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); /* as libc's */
		failed = completion_wait(all_done, (const void *const *)list, n, NULL);
		pthread_setcancelstate(state, NULL);
	}
	completion_unlock();
	for (int i = 0; !whole && asked && !failed && i < n; i++)
		if (list[i] && list[i]->aio_lio_opcode != LIO_NOP && list[i]->__error_code)
			failed = EIO;
	if (!failed && !refused)
		return 0;
	errno = failed ? failed : refused;
	return -1;
}

/* ---- the same with other names ---------------------------------------------- */

HOOK int aio_read64(struct aiocb64 *cb)
{
	return aio_read((struct aiocb *)cb);
}

HOOK int aio_write64(struct aiocb64 *cb)
{
	return aio_write((struct aiocb *)cb);
}

HOOK int aio_fsync64(int op, struct aiocb64 *cb)
{
	return aio_fsync(op, (struct aiocb *)cb);
}

HOOK int aio_suspend64(const struct aiocb64 *const list[], int n, const struct timespec *timeout)
{
	return aio_suspend((const struct aiocb *const *)list, n, timeout);
}

HOOK int aio_cancel64(int fd, struct aiocb64 *cb)
{
	return aio_cancel(fd, (struct aiocb *)cb);
}

HOOK int lio_listio64(int mode, struct aiocb64 *const list[], int n, struct sigevent *event)
{
	return lio_listio(mode, (struct aiocb *const *)list, n, event);
}

void completion_aio_forked(void)
{
	queue = NULL;
	memset(threads, 0, sizeof(threads));
}

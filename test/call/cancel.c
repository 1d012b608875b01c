// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cancellation points: a thread is cancelled while it waits in a call, or before
 * it makes one. Afterwards no number is lost, and what the call waited for is as
 * it was.
 */
#include "call.h"

#include <aio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>

/* What the calls are given. */
static struct place {
	int in, out, full, drain, listener, epoll, pipe, into, file;
	struct sockaddr_in deaf; /* no program accepts here */
	struct aiocb unread, listed;
} at;

static char buf[1 << 16];

static void connect_to_deaf(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	pthread_cleanup_push((void (*)(void *))(void *)close, (void *)(intptr_t)fd);
	connect(fd, (void *)&at.deaf, sizeof(at.deaf));
	pthread_cleanup_pop(1);
}

/* Calls that wait at these places; each is made in a thread of its own. */
#define WAITING(X)                                                                              \
	X(read, read(at.in, buf, 8))                                                            \
	X(readv, readv(at.in, message(buf, 8)->msg_iov, 1))                                     \
	X(preadv2, preadv2(at.in, message(buf, 8)->msg_iov, 1, -1, 0))                          \
	X(recv, recv(at.in, buf, 8, 0))                                                         \
	X(recvfrom, recvfrom(at.in, buf, 8, 0, NULL, NULL))                                     \
	X(recvmsg, recvmsg(at.in, message(buf, 8), 0))                                          \
	X(recvmmsg, recvmmsg(at.in, &(struct mmsghdr){ .msg_hdr = *message(buf, 8) }, 1, 0, 0)) \
	X(write, write(at.full, buf, sizeof(buf)))                                              \
	X(writev, writev(at.full, message(buf, sizeof(buf))->msg_iov, 1))                       \
	X(pwritev2, pwritev2(at.full, message(buf, sizeof(buf))->msg_iov, 1, -1, 0))            \
	X(send, send(at.full, buf, sizeof(buf), 0))                                             \
	X(sendto, sendto(at.full, buf, sizeof(buf), 0, NULL, 0))                                \
	X(sendmsg, sendmsg(at.full, message(buf, sizeof(buf)), 0))                              \
	X(sendmmsg,                                                                             \
	  sendmmsg(at.full, &(struct mmsghdr){ .msg_hdr = *message(buf, sizeof(buf)) }, 1, 0))  \
	X(accept, accept(at.listener, NULL, NULL))                                              \
	X(accept4, accept4(at.listener, NULL, NULL, SOCK_CLOEXEC))                              \
	X(connect, connect_to_deaf())                                                           \
	X(poll, poll(&(struct pollfd){ at.in, POLLIN, 0 }, 1, -1))                              \
	X(ppoll, ppoll(&(struct pollfd){ at.in, POLLIN, 0 }, 1, NULL, NULL))                    \
	X(poll_both,                                                                            \
	  poll((struct pollfd[]){ { at.in, POLLIN, 0 }, { at.pipe, POLLIN, 0 } }, 2, -1))       \
	X(poll_hosts, poll(&(struct pollfd){ at.pipe, POLLIN, 0 }, 1, -1))                      \
	X(select, select(at.in + 1, set_of(at.in), NULL, NULL, NULL))                           \
	X(pselect, pselect(at.in + 1, set_of(at.in), NULL, NULL, NULL, NULL))                   \
	X(epoll_wait, epoll_wait(at.epoll, &(struct epoll_event){ 0 }, 1, -1))                  \
	X(epoll_pwait, epoll_pwait(at.epoll, &(struct epoll_event){ 0 }, 1, -1, NULL))          \
	X(epoll_pwait2, epoll_pwait2(at.epoll, &(struct epoll_event){ 0 }, 1, NULL, NULL))      \
	X(sendfile, sendfile(at.full, at.file, &(off_t){ 0 }, sizeof(buf)))                     \
	X(splice_in, splice(at.in, NULL, at.into, NULL, 8, 0))                                  \
	X(splice_out, splice(at.pipe, NULL, at.out, NULL, 8, 0))                                \
	X(read_hosts, read(at.pipe, buf, 8))                                                    \
	X(aio_suspend, aio_suspend((const struct aiocb *[]){ &at.unread }, 1, NULL))            \
	X(aio_suspend_timeout, aio_suspend((const struct aiocb *[]){ &at.unread }, 1,           \
					   &(struct timespec){ .tv_sec = 40 }))                 \
	X(lio_listio, lio_listio(LIO_WAIT, (struct aiocb *[]){ &at.listed }, 1, NULL))

/* Calls that do not wait there; a cancellation that came before ends some of them. */
#define AT_ONCE(X)                                                                        \
	X(send_with_room, send(at.out, "x", 1, 0))                                        \
	X(write_with_room, write(at.out, "x", 1))                                         \
	X(poll_no_time, poll(&(struct pollfd){ at.in, POLLIN, 0 }, 1, 0))                 \
	X(select_no_time, select(at.in + 1, set_of(at.in), 0, 0, &(struct timeval){ 0 })) \
	X(epoll_no_time, epoll_wait(at.epoll, &(struct epoll_event){ 0 }, 1, 0))          \
	X(recv_no_wait, recv(at.in, buf, 8, MSG_DONTWAIT))                                \
	X(getsockname, getsockname(at.in, (void *)buf, &(socklen_t){ 16 }))               \
	X(getsockopt, getsockopt(at.in, SOL_SOCKET, SO_TYPE, buf, &(socklen_t){ 4 }))     \
	X(setsockopt, setsockopt(at.in, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, 4))        \
	X(shutdown, shutdown(at.listener, SHUT_WR))                                       \
	X(socket_and_close, socket_and_close())

static void socket_and_close(void)
{
	int state, fd = socket(AF_INET, SOCK_STREAM, 0);

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	close(fd);
	pthread_setcancelstate(state, NULL);
}

#define FUNCTION(name, call)                       \
	static long call_##name(struct attempt *a) \
	{                                          \
		(void)a;                           \
		(void)(call);                      \
		return 0;                          \
	}
WAITING(FUNCTION)
AT_ONCE(FUNCTION)

static const struct {
	const char *name;
	long (*call)(struct attempt *a);
} waiting[] = {
#define ENTRY(name, call) { #name, call_##name },
	WAITING(ENTRY)
}, at_once[] = {
	AT_ONCE(ENTRY)
};

/* There is no room to send, and there will be none. */
static int full_socket(void)
{
	int fd[2], flags, small = 4096;

	stream_pair(fd);
	MUST(!setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
	MUST(!setsockopt(fd[1], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
	flags = fcntl(fd[0], F_GETFL);
	MUST(!fcntl(fd[0], F_SETFL, flags | O_NONBLOCK));
	do {
		while (write(fd[0], buf, sizeof(buf)) > 0)
			;
	} while (poll(&(struct pollfd){ fd[0], POLLOUT, 0 }, 1, 300));
	MUST(!fcntl(fd[0], F_SETFL, flags));
	at.drain = fd[1];
	return fd[0];
}

/* A listener whose queue is full, so that connecting takes long. */
static struct sockaddr_in nobody_accepts(void)
{
	struct sockaddr_in addr = loopback(0);
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	MUST(!bind(listener, (void *)&addr, len) && !listen(listener, 0));
	MUST(!getsockname(listener, (void *)&addr, &len));
	for (int i = 0; i < 3; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		if (connect(fd, (void *)&addr, sizeof(addr)))
			poll(&(struct pollfd){ fd, POLLOUT, 0 }, 1, 50);
	}
	return addr;
}

static void make_places(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct sockaddr_in addr;
	int fd[2];

	stream_pair(fd);
	at.in = fd[0];
	at.out = fd[1];
	at.full = full_socket();
	at.listener = bound(SOCK_STREAM, &addr);
	at.deaf = nobody_accepts();
	MUST((at.epoll = epoll_create1(0)) >= 0);
	MUST(!epoll_ctl(at.epoll, EPOLL_CTL_ADD, at.in, &ev));
	MUST(!pipe(fd));
	at.pipe = fd[0];
	MUST(!pipe(fd));
	at.into = fd[1];
	MUST((at.file = memfd_create("file", 0)) >= 0 && !ftruncate(at.file, sizeof(buf)));
	at.unread = (struct aiocb){ .aio_fildes = at.in, .aio_buf = &buf[9], .aio_nbytes = 1 };
	at.unread.aio_sigevent.sigev_notify = SIGEV_NONE;
	at.listed = at.unread;
	at.listed.aio_lio_opcode = LIO_READ;
}

static int lowest_number(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void *begin(void *data)
{
	struct attempt *a = data;

	__atomic_store_n(&a->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	a->call(a);
	__atomic_store_n(&a->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Two that are no cancellation points by themselves come back when they have got what they
 * wait for. */
static bool is_none(const char *name)
{
	return !strcmp(name, "lio_listio") || !strcmp(name, "sendfile");
}

static void let_come_back(const char *name, const struct attempt *a)
{
	if (!strcmp(name, "lio_listio"))
		MUST(write(at.out, "12", 2) == 2);
	else
		while (!__atomic_load_n(&a->done, __ATOMIC_ACQUIRE))
			if (recv(at.drain, buf, sizeof(buf), MSG_DONTWAIT) < 0)
				sched_yield();
}

static void tell_end(const char *name, pthread_t thread)
{
	void *end;

	MUST(!pthread_join(thread, &end));
	printf("%s: %s\n", name, end == PTHREAD_CANCELED ? "cancelled" : "came back");
}

CASE(cancel_while_waiting)
{
	int before;

	make_places();
	before = lowest_number();
	for (size_t i = 0; i < COUNT(waiting); i++) {
		struct attempt a = { .call = waiting[i].call };

		if (strstr(waiting[i].name, "aio_suspend") && !at.unread.__error_code)
			MUST(!aio_read(&at.unread));
		MUST(!pthread_create(&a.thread, NULL, begin, &a));
		while (!__atomic_load_n(&a.tid, __ATOMIC_ACQUIRE))
			sched_yield();
		await_sleep(a.tid);
		MUST(!pthread_cancel(a.thread));
		if (is_none(waiting[i].name))
			let_come_back(waiting[i].name, &a);
		tell_end(waiting[i].name, a.thread);
		SHOW(lowest_number() == before);
	}
	SHOW(aio_error(&at.unread));
	SHOW(aio_error(&at.listed));
	SHOW(write(at.out, "what they waited for", 20));
	SHOW(recv(at.in, buf, 20, MSG_WAITALL));
}

static void *begin_late(void *data)
{
	struct attempt *a = data;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	__atomic_store_n(&a->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&a->done, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_setcancelstate(state, NULL);
	a->call(a);
	/* If the call was no cancellation point before, it is none now. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return NULL;
}

static void cancel_before(const char *name, long (*call)(struct attempt *a))
{
	struct attempt a = { .call = call };

	MUST(!pthread_create(&a.thread, NULL, begin_late, &a));
	while (!__atomic_load_n(&a.tid, __ATOMIC_ACQUIRE))
		sched_yield();
	MUST(!pthread_cancel(a.thread));
	__atomic_store_n(&a.done, 1, __ATOMIC_RELEASE);
	tell_end(name, a.thread);
}

CASE(cancel_before_the_call)
{
	int before;

	make_places();
	before = lowest_number();
	MUST(!aio_read(&at.unread));
	for (size_t i = 0; i < COUNT(waiting); i++)
		if (!is_none(waiting[i].name))
			cancel_before(waiting[i].name, waiting[i].call);
	for (size_t i = 0; i < COUNT(at_once); i++)
		cancel_before(at_once[i].name, at_once[i].call);
	SHOW(lowest_number() == before);
}

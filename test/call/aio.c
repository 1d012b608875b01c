// SPDX-License-Identifier: GPL-2.0-only
/* POSIX AIO on sockets, pipes and files: results, order, waiting, cancelling, lists, and how a
 * program is told. */
#include "call.h"

#include <aio.h>
#include <sys/wait.h>

/* Waits until it is done; its result. */
static void tell_request(const char *what, struct aiocb *cb)
{
	const struct aiocb *list[] = { cb };

	while (aio_error(cb) == EINPROGRESS)
		aio_suspend(list, 1, NULL);
	printf("%s: error %s, return %zd\n", what, strerrorname_np(aio_error(cb)), aio_return(cb));
}

static struct aiocb request(int fd, void *buf, size_t n)
{
	return (struct aiocb){
		.aio_fildes = fd,
		.aio_buf = buf,
		.aio_nbytes = n,
		.aio_sigevent.sigev_notify = SIGEV_NONE,
	};
}

static int file_of_bytes(int flags)
{
	char path[] = "/tmp/guise-aio-XXXXXX";
	int fd, writer = mkstemp(path);

	MUST(writer >= 0);
	MUST(write(writer, "0123456789", 10) == 10);
	fd = open(path, flags);
	MUST(fd >= 0 && !unlink(path) && !close(writer));
	return fd;
}

static void requests_of(const char *name, int in, int out)
{
	char buf[16] = "", what[64];
	struct aiocb w = request(out, "hello", 5), r = request(in, buf, sizeof(buf)), s = w;

	w.aio_offset = 3;
	r.aio_offset = 2;
	TELL(aio_write(&w), "aio_write(%s)", name);
	snprintf(what, sizeof(what), "%s, write", name);
	tell_request(what, &w);
	TELL(aio_read(&r), "aio_read(%s)", name);
	snprintf(what, sizeof(what), "%s, read", name);
	tell_request(what, &r);
	printf("%.16s\n", buf);
	for (int op = 0; op < 3; op++) {
		s = request(out, NULL, 0);
		if (TELL(aio_fsync(op == 0   ? O_SYNC
				   : op == 1 ? O_DSYNC
					     : 4711,
				   &s),
			 "aio_fsync(%s, %d)", name, op))
			continue;
		snprintf(what, sizeof(what), "%s, fsync %d", name, op);
		tell_request(what, &s);
	}
	if (!TELL(aio_fsync(O_SYNC, &r), "aio_fsync(%s, the end that is read)", name))
		tell_request("it", &r);
}

CASE(aio_requests)
{
	int fd[2], file = file_of_bytes(O_RDWR), only = file_of_bytes(O_RDONLY);
	struct aiocb cb;
	char buf[8];

	stream_pair(fd);
	requests_of("stream", fd[0], fd[1]);
	datagram_pair(fd);
	requests_of("datagram", fd[0], fd[1]);
	MUST(!pipe(fd));
	requests_of("pipe", fd[0], fd[1]);
	requests_of("file", file, file);
	requests_of("file that is read only", only, only);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	requests_of("AF_UNIX", fd[0], fd[1]);

	stream_pair(fd);
	for (int prio = -1; prio < 23; prio += 11) {
		cb = request(fd[1], "x", 1);
		cb.aio_reqprio = prio;
		if (TELL(aio_write(&cb), "aio_write(priority %d)", prio))
			printf("%s, %zd\n", strerrorname_np(aio_error(&cb)), aio_return(&cb));
		else
			tell_request("it", &cb);
		cb.aio_fildes = fd[0];
		cb.aio_buf = buf;
		if (!TELL(aio_read(&cb), "aio_read(priority %d)", prio))
			tell_request("it", &cb);
		if (!TELL(aio_fsync(O_SYNC, &cb), "aio_fsync(priority %d)", prio))
			tell_request("it", &cb);
	}
	for (int bad = -1; bad < 900; bad += 900) {
		cb = request(bad, buf, 1);
		if (!TELL(aio_read(&cb), "aio_read(no descriptor)"))
			tell_request("it", &cb);
		if (!TELL(aio_write(&cb), "aio_write(no descriptor)"))
			tell_request("it", &cb);
		TELL(aio_fsync(O_SYNC, &cb), "aio_fsync(no descriptor)");
	}
	MUST(send(fd[1], "xyz", 3, 0) == 3);
	EACH_BAD_POINTER(p)
	{
		cb = request(fd[0], p->at, 3);
		if (!TELL(aio_read(&cb), "aio_read(to %s)", p->name))
			tell_request("it", &cb);
	}
	/* The other end is gone. */
	close(fd[1]);
	cb = request(fd[0], buf, 8);
	SHOW(aio_read(&cb));
	tell_request("what is left", &cb);
	SHOW(aio_read(&cb));
	tell_request("the end", &cb);
}

/* Those of one descriptor are done one after the other. */
CASE(aio_in_order)
{
	char byte[8] = "";
	struct aiocb cb[8];
	int fd[2];

	stream_pair(fd);
	for (int i = 0; i < 8; i++) {
		cb[i] = request(fd[0], &byte[i], 1);
		/* The last two are done before all others except the first, which has begun. */
		cb[i].aio_reqprio = i < 6 ? 5 : 3;
		SHOW(aio_read(&cb[i]));
	}
	MUST(send(fd[1], "abcdefgh", 8, 0) == 8);
	for (int i = 0; i < 8; i++)
		tell_request("read", &cb[i]);
	printf("%.8s\n", byte);
}

/* More of them than there are threads, on descriptors of both kinds. */
CASE(aio_many)
{
	struct aiocb cb[64];
	char byte[64];
	int fd[64][2];

	for (int i = 0; i < 64; i++) {
		if (i % 2)
			stream_pair(fd[i]);
		else
			MUST(!pipe(fd[i]));
		cb[i] = request(fd[i][0], &byte[i], 1);
		MUST(!aio_read(&cb[i]));
	}
	for (int i = 0; i < 64; i++)
		MUST(write(fd[i][1], &"0123456789abcdef"[i % 16], 1) == 1);
	for (int i = 0; i < 64; i++)
		tell_request("read", &cb[i]);
	printf("%.64s\n", byte);
}

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	(void)sig;
	caught++;
}

static long call_suspend(struct attempt *a)
{
	return aio_suspend(a->data, a->fd, NULL);
}

static long call_suspend_long(struct attempt *a)
{
	return aio_suspend(a->data, a->fd, &(struct timespec){ .tv_sec = 30 });
}

CASE(aio_waiting)
{
	struct timespec moment = { .tv_nsec = 2000000 };
	char byte[3];
	int fd[2], ends[2];
	struct aiocb private, hosts, done;
	const struct aiocb *both[] = { NULL, &hosts, NULL, &private }, *none[2] = { NULL };
	struct attempt a = { .call = call_suspend, .data = both, .fd = 4 };

	stream_pair(fd);
	MUST(!pipe(ends));
	private = request(fd[0], &byte[0], 1);
	hosts = request(ends[0], &byte[1], 1);
	done = request(fd[0], "!", 1);
	TELL(aio_suspend(none, 2, NULL), "aio_suspend(none)");
	TELL(aio_suspend(NULL, 0, NULL), "aio_suspend(empty)");
	TELL(aio_suspend(NULL, -1, NULL), "aio_suspend(less than empty)");
	MUST(!aio_read(&private) && !aio_read(&hosts));
	TELL(aio_suspend(both, 4, &(struct timespec){ 0 }), "aio_suspend(no time)");
	TELL(aio_suspend(both, 4, &moment), "aio_suspend(a moment)");

	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART)
		for (int limit = 0; limit < 2; limit++) {
			struct sigaction act = { .sa_handler = catch, .sa_flags = flags };

			MUST(!sigaction(SIGUSR1, &act, NULL));
			a.call = limit ? call_suspend_long : call_suspend;
			caught = 0;
			WAITS(&a, flags ? "aio_suspend(restart)" : "aio_suspend(signal)", {
				MUST(!pthread_kill(a.thread, SIGUSR1));
				while (!caught)
					nanosleep(&moment, NULL);
				if (flags && !limit)
					MUST(write(ends[1], "h", 1) == 1);
			});
			if (flags && !limit) {
				tell_request("the pipe's", &hosts);
				MUST(!aio_read(&hosts));
			}
		}
	a.call = call_suspend;
	WAITS(&a, "aio_suspend(both)", MUST(send(fd[1], "p", 1, 0) == 1));
	tell_request("the socket's", &private);
	TELL(aio_suspend(both, 4, NULL), "aio_suspend(one is done)");
	MUST(write(ends[1], "h", 1) == 1);
	tell_request("the pipe's", &hosts);
	SHOW(aio_write(&done));
	tell_request("done", &done);
	TELL(aio_suspend((const struct aiocb *[]){ &done }, 1, NULL), "aio_suspend(done)");
}

CASE(aio_cancelled)
{
	char byte[6];
	int fd[2], other[2];
	struct aiocb cb[6];

	stream_pair(fd);
	stream_pair(other);
	for (int i = 0; i < 5; i++) {
		cb[i] = request(fd[0], &byte[i], 1);
		MUST(!aio_read(&cb[i]));
	}
	cb[5] = request(other[0], &byte[5], 1);
	MUST(!aio_read(&cb[5]));
	SHOW(aio_cancel(fd[0], &cb[0]) == AIO_NOTCANCELED);
	SHOW(aio_cancel(fd[0], &cb[2]) == AIO_CANCELED);
	tell_request("cancelled", &cb[2]);
	SHOW(aio_cancel(fd[0], &cb[2]) == AIO_ALLDONE);
	TELL(aio_cancel(fd[0], &cb[5]), "aio_cancel(another descriptor's)");
	TELL(aio_cancel(-1, NULL), "aio_cancel(-1)");
	TELL(aio_cancel(900, &cb[0]), "aio_cancel(no descriptor)");
	MUST(send(fd[1], "12", 2, 0) == 2);
	tell_request("first", &cb[0]);
	tell_request("second", &cb[1]);
	SHOW(aio_cancel(fd[0], NULL) == AIO_NOTCANCELED);
	SHOW(aio_error(&cb[3]) == EINPROGRESS);
	tell_request("last", &cb[4]);
	MUST(send(fd[1], "3", 1, 0) == 1);
	tell_request("fourth", &cb[3]);
	SHOW(aio_cancel(fd[0], NULL) == AIO_ALLDONE);
	SHOW(aio_cancel(fd[1], NULL) == AIO_ALLDONE);
	SHOW(aio_cancel(other[0], &cb[5]) == AIO_NOTCANCELED);
	MUST(send(other[1], "4", 1, 0) == 1);
	tell_request("other", &cb[5]);
}

/* ---- lists, and being told ----------------------------------------------------- */

static volatile int told, told_code, threads_told;

static void tell(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	told_code = info->si_code;
	told = info->si_value.sival_int;
}

static void tell_thread(union sigval value)
{
	__atomic_store_n(&threads_told, value.sival_int, __ATOMIC_RELEASE);
}

static void await_news(volatile int *news, int value)
{
	struct timespec moment = { .tv_nsec = 2000000 };
	double deadline = now() + 20;

	while (__atomic_load_n(news, __ATOMIC_ACQUIRE) != value && now() < deadline)
		nanosleep(&moment, NULL);
	printf("told %d\n", *news);
}

static long call_list(struct attempt *a)
{
	return lio_listio(LIO_WAIT, a->data, a->fd, NULL);
}

CASE(aio_lists)
{
	struct sigaction act = { .sa_sigaction = tell, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent by_signal = { .sigev_notify = SIGEV_SIGNAL,
				      .sigev_signo = SIGUSR2,
				      .sigev_value.sival_int = 7 },
			by_thread = { .sigev_notify = SIGEV_THREAD,
				      .sigev_notify_function = tell_thread,
				      .sigev_value.sival_int = 8 };
	struct aiocb in, out, nothing, *list[] = { &in, NULL, &out, &nothing };
	struct attempt a = { .call = call_list, .data = list, .fd = 4 };
	char buf[8] = "";
	int fd[2];

	stream_pair(fd);
	MUST(!sigaction(SIGUSR2, &act, NULL));
	in = request(fd[0], buf, 5);
	in.aio_lio_opcode = LIO_READ;
	out = request(fd[1], "lists", 5);
	out.aio_lio_opcode = LIO_WRITE;
	nothing = request(-1, NULL, 1);
	nothing.aio_lio_opcode = LIO_NOP;
	TELL(lio_listio(4711, list, 4, NULL), "lio_listio(no mode)");
	TELL(lio_listio(LIO_WAIT, list, 4, NULL), "lio_listio(wait)");
	tell_request("in", &in);
	tell_request("out", &out);
	printf("%.8s\n", buf);

	out.aio_lio_opcode = LIO_NOP;
	WAITS(&a, "lio_listio(wait)", MUST(send(fd[1], "later", 5, 0) == 5));
	tell_request("in", &in);
	MUST(!sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = catch }, NULL));
	caught = 0;
	WAITS(&a, "lio_listio(signal)", {
		MUST(!pthread_kill(a.thread, SIGUSR1));
		while (!caught)
			nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	});
	MUST(send(fd[1], "later", 5, 0) == 5);
	tell_request("in", &in);
	out.aio_lio_opcode = LIO_WRITE;

	TELL(lio_listio(LIO_NOWAIT, list, 4, &by_signal), "lio_listio(signal)");
	await_news(&told, 7);
	SHOW(told_code == SI_ASYNCIO);
	SHOW(aio_error(&in) == 0 && aio_error(&out) == 0);
	TELL(lio_listio(LIO_NOWAIT, list, 4, &by_thread), "lio_listio(thread)");
	await_news(&threads_told, 8);
	TELL(lio_listio(LIO_NOWAIT, list, 4, NULL), "lio_listio(nobody)");
	tell_request("in", &in);

	/* Each by itself. */
	in.aio_sigevent = by_signal;
	in.aio_sigevent.sigev_value.sival_int = 9;
	MUST(send(fd[1], "again", 5, 0) == 5);
	SHOW(aio_read(&in));
	await_news(&told, 9);
	in.aio_sigevent = by_thread;
	in.aio_sigevent.sigev_value.sival_int = 10;
	MUST(send(fd[1], "again", 5, 0) == 5);
	SHOW(aio_read(&in));
	await_news(&threads_told, 10);

	/* One fails; one cannot even begin. */
	in.aio_sigevent.sigev_notify = SIGEV_NONE;
	in.aio_fildes = 900;
	TELL(lio_listio(LIO_WAIT, list, 4, NULL), "lio_listio(one fails)");
	tell_request("in", &in);
	tell_request("out", &out);
	in.aio_reqprio = -1;
	TELL(lio_listio(LIO_NOWAIT, list, 4, NULL), "lio_listio(one cannot begin)");
	tell_request("in", &in);
	tell_request("out", &out);
	TELL(lio_listio(LIO_WAIT, list, 1, NULL), "lio_listio(it alone)");
	TELL(lio_listio(LIO_WAIT, list, 4, NULL), "lio_listio(it and another)");
	nothing.aio_lio_opcode = 4711;
	TELL(lio_listio(LIO_WAIT, &list[3], 1, NULL), "lio_listio(no such operation)");
	tell_request("nothing", &nothing);
	nothing.aio_lio_opcode = LIO_NOP;
	TELL(lio_listio(LIO_NOWAIT, &list[3], 1, &by_signal), "lio_listio(nothing)");
	await_news(&told, 7);
}

CASE(aio_large)
{
	char buf[8] = "";
	struct aiocb64 in, out, *list[] = { &in, &out };
	const struct aiocb64 *wait[] = { &in };
	int fd[2];

	stream_pair(fd);
	in = (struct aiocb64){ .aio_fildes = fd[0], .aio_buf = buf, .aio_nbytes = 5 };
	in.aio_sigevent.sigev_notify = SIGEV_NONE;
	out = in;
	out.aio_fildes = fd[1];
	out.aio_buf = "large";
	in.aio_lio_opcode = LIO_READ;
	out.aio_lio_opcode = LIO_WRITE;
	SHOW(aio_read64(&in));
	SHOW(aio_suspend64(wait, 1, &(struct timespec){ .tv_nsec = 1 }));
	SHOW(aio_cancel64(fd[0], &in) == AIO_NOTCANCELED);
	SHOW(aio_write64(&out));
	SHOW(aio_suspend64(wait, 1, NULL));
	SHOW(aio_error64(&in));
	SHOW(aio_return64(&in));
	SHOW(lio_listio64(LIO_WAIT, list, 2, NULL));
	SHOW(aio_error64(&in));
	SHOW(aio_return64(&in));
	printf("%.8s\n", buf);
	SHOW(aio_fsync64(O_SYNC, &out));
	while (aio_error64(&out) == EINPROGRESS)
		;
	SHOW(aio_error64(&out) == EINVAL);
	SHOW(aio_fsync64(4711, &out));
}

/* A child has none of its parent's requests, and can make its own. */
CASE(aio_forked)
{
	char byte[2];
	struct aiocb cb, childs;
	int fd[2], ends[2], status = -1;
	pid_t child;

	stream_pair(fd);
	MUST(!pipe(ends));
	cb = request(fd[0], &byte[0], 1);
	SHOW(aio_read(&cb));
	fflush(stdout);
	child = fork();
	if (!child) {
		childs = request(ends[1], "c", 1);
		SHOW(aio_write(&childs));
		tell_request("child's", &childs);
		fflush(stdout);
		_exit(3);
	}
	MUST(waitpid(child, &status, 0) == child);
	SHOW(status == 3 << 8);
	SHOW(read(ends[0], &byte[1], 1));
	SHOW(send(fd[1], "p", 1, 0));
	tell_request("parent's", &cb);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * pool PORT: an HTTP server with a pool of threads, which have work for each other.
 *
 * Each thread waits in epoll_wait(2) for its connections and for its eventfd. The thread that reads
 * a request gives it to the next thread, which answers it: the request is put into that thread's
 * queue, and its eventfd told. So each request wakes one thread by a socket and one by an eventfd.
 * The end of a connection takes the same way, behind its requests. New connections come from the
 * main thread, in turn.
 *
 * A request is complete when what was read ends with an empty line: clients send the next one after
 * the answer.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS 8
#define TASKS   4096 /* in a queue */
#define EVENTS  64

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct task {
	enum { ADOPT, ANSWER, CLOSE } what;
	int fd;
};

static struct worker {
	pthread_t thread;
	int ep, told;
	pthread_mutex_t lock;
	unsigned int head, tail;
	struct task tasks[TASKS];
} workers[THREADS];

static void give(struct worker *w, struct task task)
{
	uint64_t one = 1;

	pthread_mutex_lock(&w->lock);
	if (w->head - w->tail == TASKS)
		errx(1, "more than %d tasks wait", TASKS);
	w->tasks[w->head++ % TASKS] = task;
	pthread_mutex_unlock(&w->lock);
	if (write(w->told, &one, sizeof(one)) != sizeof(one))
		err(1, "write to an eventfd");
}

static bool take(struct worker *w, struct task *task)
{
	bool any;

	pthread_mutex_lock(&w->lock);
	any = w->head != w->tail;
	if (any)
		*task = w->tasks[w->tail++ % TASKS];
	pthread_mutex_unlock(&w->lock);
	return any;
}

static void watch(struct worker *w, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(w->ep, EPOLL_CTL_ADD, fd, &ev))
		err(1, "epoll_ctl");
}

static void work(struct worker *w)
{
	struct task task;
	uint64_t sum;

	if (read(w->told, &sum, sizeof(sum)) != sizeof(sum))
		err(1, "read of an eventfd");
	while (take(w, &task)) {
		if (task.what == ADOPT)
			watch(w, task.fd);
		else if (task.what == CLOSE)
			close(task.fd);
		else if (send(task.fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0 &&
			 errno != EPIPE && errno != ECONNRESET)
			err(1, "send");
	}
}

static void hear(struct worker *w, int fd)
{
	struct worker *next = workers + (w - workers + 1) % THREADS;
	char request[8192];
	ssize_t n = recv(fd, request, sizeof(request), 0);

	if (n <= 0) {
		if (epoll_ctl(w->ep, EPOLL_CTL_DEL, fd, NULL))
			err(1, "epoll_ctl");
		give(next, (struct task){ CLOSE, fd });
	} else if (n >= 4 && !memcmp(request + n - 4, "\r\n\r\n", 4)) {
		give(next, (struct task){ ANSWER, fd });
	}
}

static void *run(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(w->ep, events, EVENTS, -1);

		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == w->told)
				work(w);
			else
				hear(w, events[i].data.fd);
		}
	}
	return NULL;
}

static int listener(const char *port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, SOMAXCONN))
		err(1, "cannot listen to port %s", port);
	return fd;
}

int main(int argc, char **argv)
{
	int listening, on = 1;

	if (argc != 2)
		errx(2, "usage: pool PORT");
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	listening = listener(argv[1]);
	for (struct worker *w = workers; w < workers + THREADS; w++) {
		w->ep = epoll_create1(0);
		w->told = eventfd(0, EFD_NONBLOCK);
		if (w->ep < 0 || w->told < 0)
			err(1, "no epoll or eventfd");
		pthread_mutex_init(&w->lock, NULL);
		watch(w, w->told);
	}
	for (struct worker *w = workers; w < workers + THREADS; w++)
		if (pthread_create(&w->thread, NULL, run, w))
			errx(1, "no thread");
	for (unsigned int next = 0;; next = (next + 1) % THREADS) {
		int fd = accept(listening, NULL, NULL);

		if (fd < 0)
			err(1, "accept");
		if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
			err(1, "setsockopt");
		give(workers + next, (struct task){ ADOPT, fd });
	}
}

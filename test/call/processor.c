// SPDX-License-Identifier: GPL-2.0-only
/* Which processor a packet was handled on: how programs with a thread on each divide their work. */
#include "call.h"

#include <linux/filter.h>
#include <sched.h>

#define MOST 64 /* processors that are tried */

static int processors[MOST], n_processors;

/* Those that this program may use: numbers that another run has as well. */
static void find_processors(void)
{
	cpu_set_t set;

	MUST(!sched_getaffinity(0, sizeof(set), &set));
	for (int i = 0; i < MOST; i++)
		if (CPU_ISSET(i, &set))
			processors[n_processors++] = i;
	MUST(n_processors);
}

static void move_to(int i)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processors[i], &set);
	MUST(!sched_setaffinity(0, sizeof(set), &set));
}

static int incoming(int fd)
{
	socklen_t len = sizeof(int);
	int cpu = -2;

	MUST(!getsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &len));
	return cpu;
}

static int sender(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	MUST(fd >= 0);
	return fd;
}

CASE(incoming_processor)
{
	struct sockaddr_in addr;
	int fd = bound(SOCK_DGRAM, &addr), from = sender(), pair[2];
	char text[8];

	find_processors();
	printf("new: %d\n", incoming(from));
	for (int i = 0; i < n_processors; i++) {
		move_to(i);
		MUST(sendto(from, "x", 1, 0, (void *)&addr, sizeof(addr)) == 1);
		MUST(recv(fd, text, sizeof(text), 0) == 1);
		printf("datagram: %d\n", incoming(fd) == processors[i]);
		stream_pair(pair);
		MUST(send(pair[0], "x", 1, 0) == 1 && recv(pair[1], text, sizeof(text), 0) == 1);
		printf("stream: %d\n", incoming(pair[1]) == processors[i]);
		close(pair[0]);
		close(pair[1]);
	}
}

/* Sockets of one port, each for one processor. */
static void share(int *fd, int kind, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);

	*addr = loopback(0);
	for (int i = 0; i < n_processors; i++) {
		fd[i] = socket(AF_INET, kind, 0);
		SHOW(setsockopt(fd[i], SOL_SOCKET, SO_REUSEPORT, &(int){ 1 }, sizeof(int)));
		MUST(!bind(fd[i], (void *)addr, len));
		MUST(!getsockname(fd[i], (void *)addr, &len));
	}
}

static int which(int *fd)
{
	struct pollfd p[MOST];

	for (int i = 0; i < n_processors; i++)
		p[i] = (struct pollfd){ .fd = fd[i], .events = POLLIN };
	MUST(poll(p, (nfds_t)n_processors, 20000) == 1);
	for (int i = 0; i < n_processors; i++)
		if (p[i].revents)
			return i;
	return -1;
}

CASE(filter_by_processor)
{
	/* The socket's number is that of the processor. */
	struct sock_filter code[] = {
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)(SKF_AD_OFF + SKF_AD_CPU) },
		{ BPF_RET | BPF_A, 0, 0, 0 },
	};
	struct sock_fprog program = { COUNT(code), code };
	struct sockaddr_in addr;
	int fd[MOST], from = sender(), found;
	char text[8];

	find_processors();
	/* With numbers from 0 on: socket i is processor i's. */
	while (n_processors > 1 && processors[n_processors - 1] != n_processors - 1)
		n_processors--;
	share(fd, SOCK_DGRAM, &addr);
	SHOW(setsockopt(fd[0], SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)));
	for (int i = 0; i < n_processors && processors[0] == 0; i++) {
		move_to(i);
		MUST(sendto(from, "x", 1, 0, (void *)&addr, sizeof(addr)) == 1);
		found = which(fd);
		printf("%d: %d\n", i, found);
		MUST(recv(fd[found], text, sizeof(text), 0) == 1);
	}
}

CASE(listener_of_a_processor)
{
	struct sockaddr_in addr;
	int fd[MOST], client, found;

	find_processors();
	share(fd, SOCK_STREAM, &addr);
	for (int i = 0; i < n_processors; i++) {
		SHOW(setsockopt(fd[i], SOL_SOCKET, SO_INCOMING_CPU, &processors[i], sizeof(int)));
		MUST(!listen(fd[i], 8));
	}
	for (int i = 0; i < n_processors; i++) {
		move_to(i);
		client = socket(AF_INET, SOCK_STREAM, 0);
		MUST(!connect(client, (void *)&addr, sizeof(addr)));
		found = which(fd);
		printf("%d: %d\n", i, found);
		close(accept(fd[found], NULL, NULL));
		close(client);
	}
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * conversation [coroutines]: threads that talk over TCP on lo, served by an epoll,
 * and prints how much was said. With the word, the clients are coroutines on stacks
 * of 16 KiB instead of threads. The tests also build it with sanitizers.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#define CLIENTS     8
#define ROUNDS      50
#define SMALL_STACK 16384

static struct sockaddr_in address;
static ucontext_t scheduler, coroutine[CLIENTS];
static long said[CLIENTS];

static void need(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void *serve(void *arg)
{
	int listener = *(int *)arg, ep = epoll_create1(EPOLL_CLOEXEC), ended = 0;
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = listener }, ready[8];
	char data[256];

	need(ep >= 0 && !epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev), "epoll");
	while (ended < CLIENTS) {
		int n = epoll_wait(ep, ready, 8, -1);

		need(n >= 0, "epoll_wait");
		for (int i = 0; i < n; i++) {
			int fd = ready[i].data.fd;
			ssize_t len;

			if (fd == listener) {
				ev.data.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
				need(ev.data.fd >= 0, "accept4");
				need(!epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev), "epoll_ctl");
				continue;
			}
			len = recv(fd, data, sizeof(data), 0);
			need(len >= 0, "recv");
			if (len) {
				need(send(fd, data, (size_t)len, MSG_NOSIGNAL) == len, "send");
			} else {
				close(fd);
				ended++;
			}
		}
	}
	close(ep);
	return NULL;
}

static void talk(int number)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char word[64], back[64];

	need(fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)), "connect");
	for (int i = 0; i < ROUNDS; i++) {
		int len = snprintf(word, sizeof(word), "client %d, round %d", number, i);

		need(send(fd, word, (size_t)len, MSG_NOSIGNAL) == len, "send");
		if (coroutine[number].uc_stack.ss_size)
			swapcontext(&coroutine[number], &scheduler);
		need(recv(fd, back, (size_t)len, MSG_WAITALL) == len &&
			     !memcmp(word, back, (size_t)len),
		     "recv");
		said[number] += len;
	}
	close(fd);
}

static void *talk_in_thread(void *number)
{
	talk((int)(long)number);
	return NULL;
}

static void make_coroutine(int number)
{
	ucontext_t *c = &coroutine[number];
	char *stack =
		mmap(NULL, SMALL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(stack != MAP_FAILED && !getcontext(c), "coroutine");
	c->uc_stack.ss_sp = stack;
	c->uc_stack.ss_size = SMALL_STACK;
	c->uc_link = &scheduler;
	makecontext(c, (void (*)(void))talk, 1, number);
}

static void talk_in_coroutines(void)
{
	for (int i = 0; i < CLIENTS; i++)
		make_coroutine(i);
	for (int turn = 0; turn <= ROUNDS; turn++)
		for (int i = 0; i < CLIENTS; i++)
			swapcontext(&scheduler, &coroutine[i]);
	for (int i = 0; i < CLIENTS; i++)
		munmap(coroutine[i].uc_stack.ss_sp, SMALL_STACK);
}

int main(int argc, char **argv)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(address);
	pthread_t server, client[CLIENTS];
	long sum = 0;

	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	need(!bind(listener, (struct sockaddr *)&address, sizeof(address)), "bind");
	need(!listen(listener, CLIENTS), "listen");
	need(!getsockname(listener, (struct sockaddr *)&address, &len), "getsockname");
	need(!pthread_create(&server, NULL, serve, &listener), "thread");
	if (argc > 1 && !strcmp(argv[1], "coroutines")) {
		talk_in_coroutines();
	} else {
		for (long i = 0; i < CLIENTS; i++)
			need(!pthread_create(&client[i], NULL, talk_in_thread, (void *)i),
			     "thread");
		for (int i = 0; i < CLIENTS; i++)
			pthread_join(client[i], NULL);
	}
	pthread_join(server, NULL);
	close(listener);
	for (int i = 0; i < CLIENTS; i++)
		sum += said[i];
	printf("said %ld bytes\n", sum);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Signals of the kernel in a stack are the program's, each by its number. */
#include "guise/guise.h"
#include "guise/syscall.h"

#include "test/kernel.h"
#include "test/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>

/* SIGKILL and SIGSTOP cannot be caught; 32 and 33 are libc's own. */
static const int numbers[] = { SIGURG, SIGIO, 34, 40, 63, 64 };

static volatile sig_atomic_t came[NSIG];

static void note(int sig)
{
	came[sig]++;
}

static bool is_the_only_one(int sig)
{
	for (int i = 1; i < NSIG; i++)
		if (came[i] != (i == sig))
			return false;
	return true;
}

int main(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	struct guise_stack *s;
	int fd;

	test_find_kernel();
	s = test_stack("call", 1);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, note);
	fd = guise_socket(s, AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || guise_bind(s, fd, (void *)&a, len) ||
	    guise_getsockname(s, fd, (void *)&a, &len))
		tap_done(-errno, "a socket");
	guise_call(s, GUISE_NR_fcntl, fd, F_SETOWN,
		   guise_call(s, GUISE_NR_gettid, 0, 0, 0, 0, 0, 0), 0, 0, 0);
	guise_call(s, GUISE_NR_fcntl, fd, F_SETFL, O_ASYNC | O_NONBLOCK, 0, 0, 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		char c = 'x';

		memset((void *)came, 0, sizeof(came));
		guise_call(s, GUISE_NR_fcntl, fd, F_SETSIG, numbers[i], 0, 0, 0);
		guise_sendto(s, fd, &c, 1, 0, (void *)&a, len);
		guise_recvfrom(s, fd, &c, 1, 0, NULL, NULL);
		tap(is_the_only_one(numbers[i]), "a datagram that comes is signal %d", numbers[i]);
	}
	guise_leave(s);
	return tap_end();
}

// SPDX-License-Identifier: GPL-2.0-only
/* See ask.h, and warden/wire.h for the messages. */
#include "holder/carrier/ask.h"

#include "holder/warden/wire.h"

#include "host/message.h"
#include "host/sys.h"
#include "region/bell.h"
#include "region/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int warden_fd = -1;
static pid_t warden;

void ask_begin(int channel, pid_t pid)
{
	warden_fd = channel;
	warden = pid;
}

pid_t ask_holder(void)
{
	return warden ? warden : (pid_t)host_sys(SYS_getpid);
}

static int hear(struct warden_answer *a, int *given)
{
	struct pollfd p = { .fd = warden_fd, .events = POLLIN };
	struct guise_message m;
	long n;

	do {
		host_sys(SYS_ppoll, &p, 1, NULL, NULL, 0);
		n = guise_message_receive(warden_fd, a, sizeof(*a), &m);
	} while (n == -EAGAIN || n == -EINTR || n == -ENOMEM || n == -ENOBUFS);
	if (n != (long)sizeof(*a) || m.fds > 1 || (m.fds && !given)) {
		guise_message_close(&m);
		return -EPIPE;
	}
	if (given)
		*given = m.fds ? m.fd[0] : -1;
	return a->result;
}

/* given: NULL, or for the descriptor that may come; -1: none. */
static int ask(const struct warden_request *q, const int *fd, unsigned int fds,
	       struct warden_answer *a, int *given)
{
	int ret;

	if (given)
		*given = -1;
	if (warden_fd < 0)
		return -ENOTCONN;
	pthread_mutex_lock(&turn);
	ret = guise_message_send(warden_fd, q, sizeof(*q), fd, fds);
	if (!ret)
		ret = hear(a, given);
	pthread_mutex_unlock(&turn);
	return ret;
}

static int ask_for_fd(enum warden_what what, int about, unsigned int word)
{
	const struct warden_request q = { .what = what, .about = about, .word = word };
	struct warden_answer a;
	int fd, ret = ask(&q, NULL, 0, &a, &fd);

	if (!ret && fd < 0)
		ret = -EPROTO;
	return ret < 0 ? ret : fd;
}

static int ask_with(enum warden_what what, int about, const int *fd, unsigned int fds)
{
	const struct warden_request q = { .what = what, .about = about };
	struct warden_answer a;

	return ask(&q, fd, fds, &a, NULL);
}

int ask_to_listen(int socket)
{
	return warden_fd < 0 ? (int)host_sys(SYS_listen, socket, SOMAXCONN)
			     : ask_with(WARDEN_LISTEN, 0, NULL, 0);
}

void ask_deadline(unsigned int seconds)
{
	ask_with(WARDEN_DEADLINE, (int)seconds, NULL, 0);
}

int ask_to_seize(pid_t pid, enum untraced *why)
{
	const struct warden_request q = { .what = WARDEN_SEIZE, .about = pid };
	struct warden_answer a;
	int ret = ask(&q, NULL, 0, &a, NULL);

	*why = ret && a.value && a.value < UNTRACED_WHYS ? a.value : UNTRACED_REFUSED;
	return ret;
}

int ask_to_release(pid_t pid)
{
	return ask_with(WARDEN_RELEASE, pid, NULL, 0);
}

bool ask_about_client(int client, uid_t *user)
{
	const struct warden_request q = { .what = WARDEN_CLIENT };
	struct warden_answer a = { 0 };
	int ret = ask(&q, &client, 1, &a, NULL);

	*user = a.value;
	return !ret;
}

void ask_to_hold(int client)
{
	ask_with(WARDEN_HOLD, 0, &client, 1);
}

int ask_for_servant(int channel, pid_t pid, int end)
{
	const struct warden_request q = { .what = WARDEN_SERVANT, .about = pid };
	const int fd[WARDEN_FDS] = { channel, end };
	struct warden_answer a;
	int ret = ask(&q, fd, WARDEN_FDS, &a, NULL);

	return ret ? guise_fail(-ret, "join: no servant for process %d: %s", pid, strerror(-ret))
		   : 0;
}

int ask_for_bell(void)
{
	return ask_for_fd(WARDEN_BELL, 0, 0);
}

int ask_for_name_servers(void)
{
	return ask_for_fd(WARDEN_NAME_SERVERS, 0, 0);
}

int ask_for_guest_table(pid_t pid, bool udp, bool six)
{
	static const enum warden_table table[2][2] = { { WARDEN_TCP, WARDEN_TCP6 },
						       { WARDEN_UDP, WARDEN_UDP6 } };

	return ask_for_fd(WARDEN_GUEST_TABLE, pid, table[udp][six]);
}

pid_t ask_for_guest(pid_t guess)
{
	int pid = ask_with(WARDEN_GUEST, guess, NULL, 0);

	return pid > 0 ? pid : 0;
}

void ask_to_kill_passt(pid_t pid)
{
	ask_with(WARDEN_KILL_PASST, pid, NULL, 0);
}

int ask_for_rights(pid_t pid, struct guise_rights *rights, bool *member, bool *here)
{
	const struct warden_request q = { .what = WARDEN_RIGHTS, .about = pid };
	struct warden_answer a;
	int ret = ask(&q, NULL, 0, &a, NULL);

	if (ret)
		return ret;
	a.text[sizeof(a.text) - 1] = '\0';
	memset(rights, 0, sizeof(*rights));
	guise_rights_parse(rights, a.text);
	*member = a.value & WARDEN_MEMBER;
	*here = a.value & WARDEN_HERE;
	return rights->has_users ? 0 : -ESRCH;
}

bool ask_for_process_file(pid_t pid, const char *name, char *text)
{
	const struct warden_request q = {
		.what = WARDEN_PROCESS,
		.about = pid,
		.word = strcmp(name, "stat") ? WARDEN_STATUS : WARDEN_STAT,
	};
	struct warden_answer a;

	if (ask(&q, NULL, 0, &a, NULL))
		return false;
	a.text[sizeof(a.text) - 1] = '\0';
	memcpy(text, a.text, sizeof(a.text));
	return true;
}

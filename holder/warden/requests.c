// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the warden does for the carrier, which has no rights and no files.
 *
 * Each message is judged as if somebody else had taken the carrier over: its size, what it asks
 * for, and how many descriptors it brings. Numbers in it are used only as follows:
 *
 *	LISTEN		the plan's own socket
 *	DEADLINE	a number of seconds, at the most SECONDS: of the carrier's own end
 *	PROCESS		two files of /proc that every user may read
 *	RIGHTS		the same, and what is compared with the rights of the stack's user
 *	SEIZE, RELEASE	a process that the stack's user may trace itself (tracer.c)
 *	CLIENT		the host's kernel says who has connected
 *	HOLD		REQUESTS_HELD connections at the most
 *	SERVANT		a process with the rights of the stack's user, isolated as the carrier is;
 *			the two descriptors are all that it has
 *	BELL		as many as a stack can have
 *	NAME_SERVERS	a file that every user may read
 *	KILL_PASST	a process called passt that the stack's user may kill itself
 *	GUEST		a process of the namespace that the plan names, and its table of sockets
 *
 * An answer goes out before the next request is looked at.
 */
#include "holder/warden/requests.h"

#include "holder/control/run_folder.h"
#include "holder/servant/servant.h"
#include "holder/warden/tracer.h"
#include "holder/warden/wire.h"

#include "host/message.h"
#include "host/sys.h"
#include "region/bell.h"
#include "region/vcpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECONDS 60
#define CLIENTS 64        /* that wait to be accepted */
#define NOTHING INT32_MIN /* where a descriptor or -errno could be */

/* How many descriptors come with each. */
static const unsigned int brings[WARDEN_WHATS] = {
	[WARDEN_CLIENT] = 1,
	[WARDEN_HOLD] = 1,
	[WARDEN_SERVANT] = 2,
};

static int listen_for_commands(struct requests *r)
{
	/* The command line has called listen(2) already. Called again here, it makes the kernel
	 * name this process to clients, by which they know that it will answer
	 * (internal/holder/client.go). */
	if (r->listener < 0)
		return -EBADF;
	r->listens = true;
	return (int)host_sys(SYS_listen, r->listener, CLIENTS);
}

static int set_deadline(struct requests *r, int seconds)
{
	if (seconds < 0 || seconds > SECONDS)
		return -EINVAL;
	r->deadline = seconds ? guise_host_now() + (uint64_t)seconds * 1000000000u : 0;
	return 0;
}

static int read_process(int pid, uint32_t which, char text[GUISE_PROCESS_BYTES])
{
	static const char *const names[WARDEN_FILES] = { "stat", "status" };
	char path[40];
	ssize_t n;
	int fd;

	if (pid <= 0 || which >= WARDEN_FILES)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, names[which]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, GUISE_PROCESS_BYTES - 1);
	close(fd);
	return n > 0 ? 0 : -ESRCH;
}

static int read_rights(const struct requests *r, int pid, uint32_t *value,
		       char text[GUISE_PROCESS_BYTES])
{
	struct guise_rights now;
	int err = read_process(pid, WARDEN_STATUS, text);

	if (err)
		return err;
	*value = guise_rights_read(pid, &now) && guise_rights_same(&now, &r->rights) ? WARDEN_MEMBER
										     : 0;
	if (guise_rights_here(pid, &now))
		*value |= WARDEN_HERE;
	return 0;
}

/* The stack's user, whoever has started it, and root. */
static int judge_client(const struct requests *r, int client, uint32_t *user)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);

	*user = ~0u;
	if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &len))
		return -errno;
	*user = who.uid;
	return !who.uid || who.uid == geteuid() || who.uid == r->user.uid ? 0 : -EPERM;
}

static int hold(struct requests *r, int *client)
{
	if (r->n_held == REQUESTS_HELD)
		return -EAGAIN;
	r->held[r->n_held++] = *client;
	*client = -1;
	return 0;
}

static int start_servant(const struct requests *r, int pid, const int fd[WARDEN_FDS])
{
	if (pid <= 0)
		return -EINVAL;
	return servant_begin(fd[0], pid, fd[1], &r->user);
}

static int make_bell(struct requests *r)
{
	if (r->bells == GUISE_BELLS)
		return -EMFILE;
	r->bells++;
	return guise_bell_make();
}

static bool is_guest(const struct requests *r, int pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return pid > 0 && r->guests && !stat(path, &st) && st.st_ino == r->guests;
}

static int find_guest(const struct requests *r, int guess)
{
	struct dirent *entry;
	int pid = 0;
	DIR *proc;

	if (!r->guests || is_guest(r, guess))
		return r->guests ? guess : 0;
	proc = opendir("/proc");
	while (proc && !pid && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    is_guest(r, atoi(entry->d_name)))
			pid = atoi(entry->d_name);
	if (proc)
		closedir(proc);
	return pid;
}

static int open_table(const struct requests *r, int pid, uint32_t which)
{
	static const char *const names[WARDEN_TABLES] = { "tcp", "tcp6", "udp", "udp6" };
	char path[64];
	int fd;

	if (which >= WARDEN_TABLES || !is_guest(r, pid))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, names[which]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Of a user who is not root the host's kernel decides, or who it is says so. */
static int kill_passt(const struct requests *r, int pid)
{
	char text[GUISE_PROCESS_BYTES] = "";
	unsigned int uid;
	const char *at;
	int err = read_process(pid, WARDEN_STATUS, text);

	if (err)
		return err;
	at = strstr(text, "\nUid:");
	if (strncmp(text, "Name:\tpasst", strlen("Name:\tpasst")) || !at ||
	    sscanf(at, "\nUid: %u", &uid) != 1)
		return -EPERM;
	if (r->user.uid && geteuid() != r->user.uid && uid != r->user.uid)
		return -EPERM;
	return kill(pid, SIGKILL) ? -errno : 0;
}

static int open_name_servers(void)
{
	int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/* *give: a descriptor for the answer, -errno, or NOTHING. */
static void answer(struct requests *r, const struct warden_request *q, int *fd,
		   struct warden_answer *a, int *give)
{
	enum untraced why = UNTRACED_NOT;

	switch ((enum warden_what)q->what) {
	case WARDEN_LISTEN:
		a->result = listen_for_commands(r);
		break;
	case WARDEN_DEADLINE:
		a->result = set_deadline(r, q->about);
		break;
	case WARDEN_PROCESS:
		a->result = read_process(q->about, q->word, a->text);
		break;
	case WARDEN_RIGHTS:
		a->result = read_rights(r, q->about, &a->value, a->text);
		break;
	case WARDEN_SEIZE:
		a->result = q->about > 0 ? tracer_seize(q->about, &why) : -EINVAL;
		a->value = why;
		break;
	case WARDEN_RELEASE:
		a->result = q->about > 0 ? tracer_release(q->about) : -EINVAL;
		break;
	case WARDEN_CLIENT:
		a->result = judge_client(r, fd[0], &a->value);
		break;
	case WARDEN_HOLD:
		a->result = hold(r, &fd[0]);
		break;
	case WARDEN_SERVANT:
		a->result = start_servant(r, q->about, fd);
		break;
	case WARDEN_BELL:
		*give = make_bell(r);
		break;
	case WARDEN_NAME_SERVERS:
		*give = open_name_servers();
		break;
	case WARDEN_GUEST:
		a->result = find_guest(r, q->about);
		break;
	case WARDEN_GUEST_TABLE:
		*give = open_table(r, q->about, q->word);
		break;
	case WARDEN_KILL_PASST:
		a->result = kill_passt(r, q->about);
		break;
	case WARDEN_WHATS:
		break;
	}
	if (*give != NOTHING && *give < 0)
		a->result = *give;
}

bool requests_answer(struct requests *r)
{
	struct warden_request q = { 0 };
	struct warden_answer a = { 0 };
	struct guise_message m;
	int give = NOTHING;
	long n = guise_message_receive(r->channel, &q, sizeof(q), &m);

	if (n == -EAGAIN || n == -EINTR || n == -ENOMEM || n == -ENOBUFS || n == -EMFILE ||
	    n == -ENFILE)
		return true;
	if (n <= 0)
		return false;
	if (n != (long)sizeof(q) || !q.what || q.what >= WARDEN_WHATS || m.fds != brings[q.what])
		a.result = -EPROTO;
	else
		answer(r, &q, m.fd, &a, &give);
	guise_message_send(r->channel, &a, sizeof(a), &give, give >= 0);
	if (give >= 0)
		close(give);
	for (unsigned int i = 0; i < m.fds; i++)
		if (m.fd[i] >= 0)
			close(m.fd[i]);
	return true;
}

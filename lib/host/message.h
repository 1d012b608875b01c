/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages with descriptors between processes of guise (SCM_RIGHTS, unix(7)). */
#ifndef GUISE_HOST_MESSAGE_H
#define GUISE_HOST_MESSAGE_H

#include <stddef.h>
#include <sys/socket.h>

#define GUISE_MESSAGE_FDS 253 /* SCM_MAX_FD: the most that one message can carry */

/* What came with a message. */
struct guise_message {
	int fd[GUISE_MESSAGE_FDS]; /* close-on-exec; the receiver's to close */
	unsigned int fds;
	struct ucred sender; /* where the socket has SO_PASSCRED; pid 0: not said */
};

/* Sends len bytes with n descriptors as one message, without waiting: 0 or -errno. */
int guise_message_send(int to, const void *data, size_t len, const int *fd, unsigned int n);

/*
 * Receives one message without waiting: its whole length, of which room bytes at the most are
 * kept; or -errno, and m is empty. If the host lacks what it takes, it pauses as below.
 */
long guise_message_receive(int from, void *data, size_t room, struct guise_message *m);

void guise_message_close(const struct guise_message *m);

/*
 * What is there to be taken stays there when the host has no descriptor or no memory for it: who
 * polls the socket would ask again at once, and use a processor for that alone. So this sleeps for
 * 10 ms if ret, which a call has returned, is such an error.
 */
void guise_lacking_pause(long ret);

#endif

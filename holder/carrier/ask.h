/* SPDX-License-Identifier: GPL-2.0-only */
/* What the carrier asks of the warden; any thread may. A process without a warden has what it
 * asks for itself, as tests do. */
#ifndef GUISE_HOLDER_ASK_H
#define GUISE_HOLDER_ASK_H

#include "holder/members/untraced.h"

#include <stdbool.h>
#include <sys/types.h>

/* Its end of the channel, and the warden. */
void ask_begin(int channel, pid_t warden);
/* The process that stands for the holder: the warden, or this one. */
pid_t ask_holder(void);

/* This socket listens, in the warden's name. 0 or -errno. */
int ask_to_listen(int socket);
/* All that follows ends within seconds, or is asked for anew; 0: no more. */
void ask_deadline(unsigned int seconds);
/* Traces a process: 0, or -errno and why. */
int ask_to_seize(pid_t pid, enum untraced *why);
int ask_to_release(pid_t pid);
/* Whether that client of the control socket may ask; its user. */
bool ask_about_client(int client, uid_t *user);
/* The connection hangs up when the warden ends, and not before. */
void ask_to_hold(int client);
/* 0, or -errno with a sentence. */
int ask_for_servant(int channel, pid_t pid, int end);
/* A descriptor, or -errno. */
int ask_for_bell(void);
int ask_for_name_servers(void);
int ask_for_guest_table(pid_t pid, bool udp, bool six);
/* A process in the guests' namespace, 0: none; guess: one that was there. */
pid_t ask_for_guest(pid_t guess);
void ask_to_kill_passt(pid_t pid);
/* What a process may do, as far as its status says it: 0 or -errno. member: it has the rights of
 * the stack's user; here: it is in the holder's user namespace. */
struct guise_rights;
int ask_for_rights(pid_t pid, struct guise_rights *rights, bool *member, bool *here);
bool ask_for_process_file(pid_t pid, const char *name, char *text);

#endif

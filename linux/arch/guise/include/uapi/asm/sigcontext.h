/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
#ifndef _UAPI_ASM_GUISE_SIGCONTEXT_H
#define _UAPI_ASM_GUISE_SIGCONTEXT_H

/* Empty: the host's kernel makes the frames of signals. */
struct sigcontext {
	unsigned long none;
};

#endif

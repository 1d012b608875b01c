/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
#ifndef _UAPI_ASM_GUISE_SIGCONTEXT_H
#define _UAPI_ASM_GUISE_SIGCONTEXT_H

/* Signal frames are made by the host's kernel, never here. */
struct sigcontext {
	unsigned long none;
};

#endif

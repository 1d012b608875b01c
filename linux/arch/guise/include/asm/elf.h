/* SPDX-License-Identifier: GPL-2.0-only */
/* Other headers need these names. The port loads no program and dumps no core. */
#ifndef _ASM_GUISE_ELF_H
#define _ASM_GUISE_ELF_H

#include <asm/ptrace.h>

#define ELF_CLASS         ELFCLASS64
#define ELF_DATA          ELFDATA2LSB
#define ELF_ARCH          EM_NONE
#define ELF_EXEC_PAGESIZE PAGE_SIZE
#define ELF_HWCAP         0
#define ELF_PLATFORM      NULL
#define ELF_ET_DYN_BASE   0
#define ELF_NGREG         1
#define elf_check_arch(x) 0

typedef unsigned long elf_greg_t;
typedef elf_greg_t elf_gregset_t[ELF_NGREG];
typedef unsigned long elf_fpregset_t;

#endif

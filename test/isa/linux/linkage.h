/* SPDX-License-Identifier: GPL-2.0-only */
/* What linux/arch/guise/kernel/isa_*.S take from the kernel's header of this name: assembler. */
/* clang-format off */
#define SYM_FUNC_START(name)       .globl name; name:
#define SYM_FUNC_END(name)         .size name, . - name
#define SYM_CODE_START_LOCAL(name) name:
#define SYM_CODE_END(name)

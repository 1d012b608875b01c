/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers for guise_call(): system calls of Linux that concern a network stack, by their
 * generic 64-bit numbers, which the port uses on every processor (the host's
 * <sys/syscall.h> has others on x86). Taken from Linux 6.12,
 * include/uapi/asm-generic/unistd.h; these numbers never change. The port's own calls, such
 * as GUISE_NR_LINK_ADD, are in guise/contract.h.
 */
#ifndef GUISE_SYSCALL_H
#define GUISE_SYSCALL_H

/* Descriptors: files of the stack's /proc and /sys, pipes, events, timers. */
#define GUISE_NR_openat            56
#define GUISE_NR_openat2           437
#define GUISE_NR_close             57
#define GUISE_NR_close_range       436
#define GUISE_NR_dup               23
#define GUISE_NR_dup3              24
#define GUISE_NR_fcntl             25
#define GUISE_NR_ioctl             29
#define GUISE_NR_read              63
#define GUISE_NR_write             64
#define GUISE_NR_readv             65
#define GUISE_NR_writev            66
#define GUISE_NR_pread64           67
#define GUISE_NR_pwrite64          68
#define GUISE_NR_preadv            69
#define GUISE_NR_pwritev           70
#define GUISE_NR_preadv2           286
#define GUISE_NR_pwritev2          287
#define GUISE_NR_lseek             62
#define GUISE_NR_pipe2             59
#define GUISE_NR_eventfd2          19
#define GUISE_NR_timerfd_create    85
#define GUISE_NR_timerfd_settime   86
#define GUISE_NR_timerfd_gettime   87
#define GUISE_NR_signalfd4         74
#define GUISE_NR_sendfile          71
#define GUISE_NR_splice            76
#define GUISE_NR_tee               77
#define GUISE_NR_vmsplice          75
#define GUISE_NR_getdents64        61
#define GUISE_NR_fstat             80
#define GUISE_NR_newfstatat        79
#define GUISE_NR_statx             291
#define GUISE_NR_readlinkat        78
#define GUISE_NR_faccessat         48
#define GUISE_NR_fsync             82
#define GUISE_NR_ftruncate         46
#define GUISE_NR_inotify_init1     26
#define GUISE_NR_inotify_add_watch 27
#define GUISE_NR_inotify_rm_watch  28

/* Sockets. */
#define GUISE_NR_socket      198
#define GUISE_NR_socketpair  199
#define GUISE_NR_bind        200
#define GUISE_NR_listen      201
#define GUISE_NR_accept      202
#define GUISE_NR_accept4     242
#define GUISE_NR_connect     203
#define GUISE_NR_getsockname 204
#define GUISE_NR_getpeername 205
#define GUISE_NR_sendto      206
#define GUISE_NR_recvfrom    207
#define GUISE_NR_setsockopt  208
#define GUISE_NR_getsockopt  209
#define GUISE_NR_shutdown    210
#define GUISE_NR_sendmsg     211
#define GUISE_NR_recvmsg     212
#define GUISE_NR_sendmmsg    269
#define GUISE_NR_recvmmsg    243

/* Waiting and time. */
#define GUISE_NR_ppoll           73
#define GUISE_NR_pselect6        72
#define GUISE_NR_epoll_create1   20
#define GUISE_NR_epoll_ctl       21
#define GUISE_NR_epoll_pwait     22
#define GUISE_NR_epoll_pwait2    441
#define GUISE_NR_nanosleep       101
#define GUISE_NR_clock_nanosleep 115
#define GUISE_NR_clock_gettime   113
#define GUISE_NR_clock_getres    114
#define GUISE_NR_sched_yield     124

/* The stack's own file tree and namespaces. */
#define GUISE_NR_mount     40
#define GUISE_NR_umount2   39
#define GUISE_NR_mknodat   33
#define GUISE_NR_mkdirat   34
#define GUISE_NR_unlinkat  35
#define GUISE_NR_symlinkat 36
#define GUISE_NR_renameat2 276
#define GUISE_NR_getcwd    17
#define GUISE_NR_chdir     49
#define GUISE_NR_fchdir    50
#define GUISE_NR_chroot    51
#define GUISE_NR_statfs    43
#define GUISE_NR_fstatfs   44
#define GUISE_NR_setns     268
#define GUISE_NR_unshare   97

/* Processes, signals, identity. */
#define GUISE_NR_getpid          172
#define GUISE_NR_getppid         173
#define GUISE_NR_gettid          178
#define GUISE_NR_getuid          174
#define GUISE_NR_geteuid         175
#define GUISE_NR_getgid          176
#define GUISE_NR_getegid         177
#define GUISE_NR_setresuid       147
#define GUISE_NR_setresgid       149
#define GUISE_NR_getgroups       158
#define GUISE_NR_setgroups       159
#define GUISE_NR_capget          90
#define GUISE_NR_capset          91
#define GUISE_NR_prctl           167
#define GUISE_NR_kill            129
#define GUISE_NR_tkill           130
#define GUISE_NR_tgkill          131
#define GUISE_NR_rt_sigaction    134
#define GUISE_NR_rt_sigprocmask  135
#define GUISE_NR_rt_sigpending   136
#define GUISE_NR_rt_sigtimedwait 137
#define GUISE_NR_rt_sigsuspend   133
#define GUISE_NR_setsid          157
#define GUISE_NR_getsid          156
#define GUISE_NR_setpgid         154
#define GUISE_NR_getpgid         155
#define GUISE_NR_umask           166
#define GUISE_NR_uname           160
#define GUISE_NR_sethostname     161
#define GUISE_NR_getrlimit       163
#define GUISE_NR_prlimit64       261
#define GUISE_NR_getrusage       165
#define GUISE_NR_sysinfo         179
#define GUISE_NR_syslog          116
#define GUISE_NR_getrandom       278
#define GUISE_NR_bpf             280

#endif

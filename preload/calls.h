/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one list of calls that libguise-preload.so answers. From it come the
 * table of libc's originals (originals.c), the symbols that the library
 * exports (preload.map), the calls by number (raw/syscall.c), docs/calls.md and the
 * tests that must exist (test/preload): a call that is missing here is no hook, and one that is
 * here without a hook or a test fails `make check`.
 *
 *	CLASS(class, what it means for a descriptor of the stack)
 *	CALL(name, class, test, what this call does beyond its class)
 *	ALIAS(name, call): libc has the call under this name, too
 *	NUMBER(number, call, arguments): the system call SYS_number is the call, with
 *		these of its six arguments, a to f; P() makes a pointer of one
 *	DECODED(number, call): the same where more is to be done: its arguments are laid
 *		out otherwise, or only some of them make it the call; number_NUMBER() does it
 *		(raw/number.h)
 *	OLD_NUMBER, OLD_DECODED: the same, on processors that have the older calls (x86-64),
 *		or with EVERY_NUMBER
 *
 * Of a call without a number there is no system call: libc makes it of others. test/preload
 * has the list of system calls that are no call of this one.
 *
 * Included several times: a file that includes it defines the macros that it wants.
 */
#ifndef CLASS
#define CLASS(class, meaning)
#endif
#ifndef CALL
#define CALL(name, class, test, note)
#endif
#ifndef ALIAS
#define ALIAS(name, call)
#endif
#ifndef NUMBER
#define NUMBER(number, call, arguments)
#endif
#ifndef DECODED
#define DECODED(number, call)
#endif
#if defined(SYS_open) || defined(EVERY_NUMBER) /* asm-generic has none of them */
#define OLD_NUMBER  NUMBER
#define OLD_DECODED DECODED
#else
#define OLD_NUMBER(number, call, arguments)
#define OLD_DECODED(number, call)
#endif

CLASS(socket, "Sockets of the families that carry IP are the stack's; all others are the host's. \
Names, options and states are answered by the stack.")
CALL(socket, socket, family_rule, "AF_INET, AF_INET6, AF_PACKET, AF_KEY, AF_SMC, AF_RDS, AF_RXRPC, \
AF_KCM, AF_TIPC, AF_PPPOX, AF_XDP and the networking families of AF_NETLINK (route, sock_diag, \
nflog, xfrm, fib_lookup, netfilter, generic) go to the stack; so does a family that an extension \
of its kernel has. GUISE_MPTCP=1 makes TCP sockets MPTCP.")
NUMBER(socket, socket, (a, b, c))
CALL(socketpair, socket, family_rule, "")
NUMBER(socketpair, socketpair, (a, b, c, P(d)))
CALL(bind, socket, stream_echo, "")
NUMBER(bind, bind, (a, P(b), c))
CALL(connect, socket, stream_echo, "")
NUMBER(connect, connect, (a, P(b), c))
CALL(listen, socket, stream_echo, "")
NUMBER(listen, listen, (a, b))
CALL(accept, socket, stream_echo, "The new descriptor's number is reserved first, as Linux does: \
EMFILE leaves the connection in the queue.")
NUMBER(accept, accept, (a, P(b), P(c)))
CALL(accept4, socket, accept_flags, "As accept.")
NUMBER(accept4, accept4, (a, P(b), P(c), d))
CALL(shutdown, socket, stream_echo, "")
NUMBER(shutdown, shutdown, (a, b))
CALL(getsockname, socket, socket_names, "")
NUMBER(getsockname, getsockname, (a, P(b), P(c)))
CALL(getpeername, socket, socket_names, "")
NUMBER(getpeername, getpeername, (a, P(b), P(c)))
CALL(getsockopt, socket, socket_options, "")
NUMBER(getsockopt, getsockopt, (a, b, c, P(d), P(e)))
CALL(setsockopt, socket, socket_options, "")
NUMBER(setsockopt, setsockopt, (a, b, c, P(d), e))
CALL(sockatmark, socket, out_of_band, "")
CALL(bindresvport, socket, reserved_port, "")
ALIAS(__connect, connect)

CLASS(transfer, "Data moves in the stack, directly between its buffers and the program's.")
CALL(read, transfer, transfer_forms, "")
NUMBER(read, read, (a, P(b), c))
CALL(write, transfer, transfer_forms, "")
NUMBER(write, write, (a, P(b), c))
CALL(readv, transfer, transfer_forms, "")
NUMBER(readv, readv, (a, P(b), c))
CALL(writev, transfer, transfer_forms, "")
NUMBER(writev, writev, (a, P(b), c))
CALL(pread, transfer, transfer_positions, "ESPIPE.")
CALL(pwrite, transfer, transfer_positions, "ESPIPE.")
CALL(pread64, transfer, transfer_positions, "ESPIPE.")
NUMBER(pread64, pread64, (a, P(b), c, d))
CALL(pwrite64, transfer, transfer_positions, "ESPIPE.")
NUMBER(pwrite64, pwrite64, (a, P(b), c, d))
CALL(preadv, transfer, transfer_positions, "ESPIPE.")
CALL(pwritev, transfer, transfer_positions, "ESPIPE.")
CALL(preadv64, transfer, transfer_positions, "ESPIPE.")
NUMBER(preadv, preadv64, (a, P(b), c, d))
CALL(pwritev64, transfer, transfer_positions, "ESPIPE.")
NUMBER(pwritev, pwritev64, (a, P(b), c, d))
CALL(preadv2, transfer, transfer_positions, "Offset -1 as readv, else ESPIPE.")
CALL(pwritev2, transfer, transfer_positions, "Offset -1 as writev, else ESPIPE.")
CALL(preadv64v2, transfer, transfer_positions, "Offset -1 as readv, else ESPIPE.")
NUMBER(preadv2, preadv64v2, (a, P(b), c, d, f))
CALL(pwritev64v2, transfer, transfer_positions, "Offset -1 as writev, else ESPIPE.")
NUMBER(pwritev2, pwritev64v2, (a, P(b), c, d, f))
CALL(lseek, transfer, live_files, "ESPIPE, except for files of the stack.")
NUMBER(lseek, lseek, (a, b, c))
CALL(lseek64, transfer, live_files, "As lseek.")
CALL(send, transfer, transfer_forms, "")
CALL(recv, transfer, transfer_forms, "")
CALL(sendto, transfer, datagram, "")
NUMBER(sendto, sendto, (a, P(b), c, d, P(e), f))
CALL(recvfrom, transfer, datagram, "")
NUMBER(recvfrom, recvfrom, (a, P(b), c, d, P(e), P(f)))
CALL(sendmsg, transfer, datagram,
     "SCM_RIGHTS: a private socket arrives as one, in any process of the \
stack.")
NUMBER(sendmsg, sendmsg, (a, P(b), c))
CALL(recvmsg, transfer, rights_between_processes, "As sendmsg.")
NUMBER(recvmsg, recvmsg, (a, P(b), c))
CALL(sendmmsg, transfer, datagram, "As sendmsg.")
NUMBER(sendmmsg, sendmmsg, (a, P(b), c, d))
CALL(recvmmsg, transfer, datagram, "As sendmsg.")
NUMBER(recvmmsg, recvmmsg, (a, P(b), c, d, P(e)))
CALL(sendfile, transfer, send_file,
     "From a file of the host to the stack: read and sent in pieces.")
CALL(sendfile64, transfer, send_file, "As sendfile.")
NUMBER(sendfile, sendfile64, (a, b, P(c), d))
CALL(splice, transfer, splice_pipes,
     "Between a pipe of the host and the stack: looked at, written, \
then taken.")
NUMBER(splice, splice, (a, P(b), c, P(d), e, f))
CALL(__read_chk, transfer, fortified, "As read; a buffer that is too small ends the program.")
CALL(__pread_chk, transfer, fortified, "As pread.")
CALL(__pread64_chk, transfer, fortified, "As pread.")
CALL(__recv_chk, transfer, fortified, "As recv.")
CALL(__recvfrom_chk, transfer, fortified, "As recvfrom.")
ALIAS(__read, read)
ALIAS(__write, write)
ALIAS(__send, send)
ALIAS(__pread64, pread64)
ALIAS(__pwrite64, pwrite64)

CLASS(aio, "POSIX AIO is done by threads of guise's own, for the host's descriptors as well; \
aio_error and aio_return are libc's.")
CALL(aio_read, aio, aio_requests, "")
CALL(aio_write, aio, aio_requests, "")
CALL(aio_fsync, aio, aio_requests, "")
CALL(aio_suspend, aio, aio_waiting, "")
CALL(aio_cancel, aio, aio_cancelled, "")
CALL(lio_listio, aio, aio_lists, "No cancellation point, as in libc.")
CALL(aio_read64, aio, aio_large, "")
CALL(aio_write64, aio, aio_large, "")
CALL(aio_fsync64, aio, aio_large, "")
CALL(aio_suspend64, aio, aio_large, "")
CALL(aio_cancel64, aio, aio_large, "")
CALL(lio_listio64, aio, aio_large, "")

CLASS(descriptor,
      "The host descriptor behind a private socket and the stack's own change together. \
Close-on-exec is a property of the host descriptor, O_NONBLOCK of the stack's.")
CALL(close, descriptor, close_wakes_peer, "guise's own descriptors cannot be closed: EBADF.")
NUMBER(close, close, (a))
CALL(close_range, descriptor, close_ranges, "Leaves guise's own descriptors out.")
NUMBER(close_range, close_range, (a, b, c))
CALL(closefrom, descriptor, close_ranges, "As close_range.")
CALL(dup, descriptor, dup_forms, "")
NUMBER(dup, dup, (a))
CALL(dup2, descriptor, dup_forms, "Between private and host descriptors in both directions.")
OLD_NUMBER(dup2, dup2, (a, b))
CALL(dup3, descriptor, dup_forms, "As dup2.")
NUMBER(dup3, dup3, (a, b, c))
CALL(fcntl, descriptor, fcntl_commands, "F_DUPFD as dup; F_GETFL, F_SETFL ask the stack (O_ASYNC: \
EINVAL); the rest asks the host.")
NUMBER(fcntl, fcntl, (a, b, c))
CALL(fcntl64, descriptor, fcntl_commands, "As fcntl.")
CALL(ioctl, descriptor, ioctl_requests, "To the stack. The interface requests (SIOCGIFCONF and its \
like) on a socket of the host, AF_UNIX for example, are answered by the stack, too.")
NUMBER(ioctl, ioctl, (a, b, c))
CALL(mmap, descriptor, ring_mapped, "Packet rings. Else ENODEV, as for any socket.")
NUMBER(mmap, mmap, (P(a), b, c, d, e, f))
CALL(mmap64, descriptor, ring_mapped, "As mmap.")
CALL(munmap, descriptor, ring_mapped, "")
NUMBER(munmap, munmap, (P(a), b))
CALL(readdir, descriptor, own_numbers, "guise's own descriptors are not in /proc/self/fd.")
CALL(readdir64, descriptor, own_numbers, "As readdir.")
CALL(getdents64, descriptor, own_numbers, "As readdir.")
NUMBER(getdents64, getdents64, (a, P(b), c))
CALL(posix_spawn_file_actions_addclose, descriptor, spawn_actions, "Not the ticket, with which the \
child joins.")
CALL(posix_spawn_file_actions_addclosefrom_np, descriptor, spawn_actions, "As addclose.")
CALL(posix_spawn_file_actions_adddup2, descriptor, spawn_passes, "")
ALIAS(__close, close)
ALIAS(__dup2, dup2)
ALIAS(__fcntl, fcntl)

CLASS(stdio,
      "A stream over a private socket makes its calls through these hooks. stdin, stdout and \
stderr follow when a private socket takes their number.")
CALL(fdopen, stdio, stdio_streams, "")
CALL(fclose, stdio, stdio_replaced, "")
CALL(freopen, stdio, stdio_replaced, "")
CALL(freopen64, stdio, stdio_replaced, "")
CALL(dprintf, stdio, stdio_streams, "")
CALL(vdprintf, stdio, stdio_streams, "")
CALL(__dprintf_chk, stdio, stdio_streams, "As dprintf.")
CALL(__vdprintf_chk, stdio, stdio_streams, "As vdprintf.")
CALL(fwrite, stdio, stdio_copies, "This and the rest: a copy of stdin, stdout or stderr means \
what the variable does now; else libc's.")
CALL(fread, stdio, stdio_copies, "")
CALL(fputc, stdio, stdio_copies, "")
CALL(fgetc, stdio, stdio_copies, "")
CALL(ungetc, stdio, stdio_copies, "")
CALL(fputs, stdio, stdio_copies, "")
CALL(fgets, stdio, stdio_copies, "")
CALL(getdelim, stdio, stdio_copies, "")
CALL(getline, stdio, stdio_copies, "")
CALL(fflush, stdio, stdio_copies, "")
CALL(fprintf, stdio, stdio_copies, "")
CALL(vfprintf, stdio, stdio_copies, "")
CALL(__fprintf_chk, stdio, stdio_copies, "As fprintf.")
CALL(__vfprintf_chk, stdio, stdio_copies, "As vfprintf.")
ALIAS(getc, fgetc)
ALIAS(_IO_getc, fgetc)
ALIAS(putc, fputc)
ALIAS(_IO_putc, fputc)
ALIAS(__getdelim, getdelim)
ALIAS(_IO_fdopen, fdopen)
ALIAS(_IO_fclose, fclose)

CLASS(wait,
      "Host descriptors only: the host's call. Private ones only: the stack's. A mixture: both \
are looked at, then the thread waits in the stack with the host's descriptors beside it.")
CALL(poll, wait, poll_mixed, "")
OLD_NUMBER(poll, poll, (P(a), b, c))
CALL(ppoll, wait, poll_signal_mask, "")
DECODED(ppoll, ppoll)
CALL(select, wait, select_mixed, "")
OLD_DECODED(select, select)
CALL(pselect, wait, select_signal_mask, "")
DECODED(pselect6, pselect)
CALL(__poll_chk, wait, fortified, "As poll; an array that is too small ends the program.")
CALL(__ppoll_chk, wait, fortified, "As ppoll.")
ALIAS(__poll, poll)
ALIAS(__select, select)

CLASS(epoll,
      "An epoll descriptor is the host's; with its first private member it gets a second half \
in the stack, and waiting asks both.")
CALL(epoll_create, epoll, epoll_mixed, "")
OLD_NUMBER(epoll_create, epoll_create, (a))
CALL(epoll_create1, epoll, epoll_mixed, "")
NUMBER(epoll_create1, epoll_create1, (a))
CALL(epoll_ctl, epoll, epoll_nested, "Nesting gives both epolls a private half.")
NUMBER(epoll_ctl, epoll_ctl, (a, b, c, P(d)))
CALL(epoll_wait, epoll, epoll_mixed, "When both halves are full, each gets half of the room.")
OLD_NUMBER(epoll_wait, epoll_wait, (a, P(b), c, d))
CALL(epoll_pwait, epoll, epoll_signal_mask, "As epoll_wait.")
DECODED(epoll_pwait, epoll_pwait)
CALL(epoll_pwait2, epoll, epoll_signal_mask, "As epoll_wait.")
DECODED(epoll_pwait2, epoll_pwait2)

CLASS(resolver, "Names are looked up in /etc/hosts and by DNS over the stack. Servers: $GUISE_DNS, \
else /etc/resolv.conf as the program sees it.")
CALL(getaddrinfo, resolver, names_forward, "")
CALL(getnameinfo, resolver, names_backward, "")
CALL(gethostbyname, resolver, names_old_calls, "")
CALL(gethostbyname2, resolver, names_old_calls, "")
CALL(gethostbyname_r, resolver, names_old_calls, "")
CALL(gethostbyname2_r, resolver, names_old_calls, "")
CALL(gethostbyaddr, resolver, names_old_calls, "")
CALL(gethostbyaddr_r, resolver, names_old_calls, "")
CALL(getaddrinfo_a, resolver, names_asynchronous, "A thread of guise's for each list.")
CALL(gai_suspend, resolver, names_asynchronous, "")
CALL(gai_cancel, resolver, names_asynchronous, "")
CALL(res_query, resolver, names_raw, "")
CALL(res_search, resolver, names_raw, "")
CALL(res_querydomain, resolver, names_raw, "")
CALL(res_send, resolver, names_raw, "")
CALL(res_nquery, resolver, names_raw, "The servers and options in the caller's state are not used.")
CALL(res_nsearch, resolver, names_raw, "As res_nquery.")
CALL(res_nquerydomain, resolver, names_raw, "As res_nquery.")
CALL(res_nsend, resolver, names_raw, "As res_nquery.")
ALIAS(__res_query, res_query)
ALIAS(__res_search, res_search)
ALIAS(__res_querydomain, res_querydomain)
ALIAS(__res_send, res_send)
ALIAS(__res_nquery, res_nquery)
ALIAS(__res_nsearch, res_nsearch)
ALIAS(__res_nquerydomain, res_nquerydomain)
ALIAS(__res_nsend, res_nsend)

CLASS(file, "Files are the host's, except /proc/net, /proc/sys/net, /sys/class/net, \
/sys/devices/virtual/net and /dev/net/tun, which are the stack's. To open /etc/resolv.conf \
for reading gives the one that is right on the stack, when the host's is not.")
CALL(open, file, resolv_conf_forms, "")
OLD_DECODED(open, open)
CALL(open64, file, resolv_conf_forms, "")
CALL(openat, file, resolv_conf_forms, "")
NUMBER(openat, openat, (a, P(b), c, d))
DECODED(openat2, openat)
CALL(openat64, file, resolv_conf_forms, "")
CALL(fopen, file, resolv_conf_forms, "")
CALL(fopen64, file, resolv_conf_forms, "")
CALL(__open_2, file, resolv_conf_forms, "As open.")
CALL(__open64_2, file, resolv_conf_forms, "As open.")
CALL(__openat_2, file, resolv_conf_forms, "As openat.")
CALL(__openat64_2, file, resolv_conf_forms, "As openat.")
CALL(fstat, file, live_files, "Of a private socket: the host's, of its placeholder.")
DECODED(fstat, fstat)
CALL(fstat64, file, live_files, "As fstat.")
CALL(stat, file, live_files, "")
OLD_DECODED(stat, stat)
CALL(stat64, file, live_files, "")
CALL(lstat, file, live_files, "")
OLD_DECODED(lstat, lstat)
CALL(lstat64, file, live_files, "")
CALL(fstatat, file, live_files, "")
NUMBER(newfstatat, fstatat, (a, P(b), P(c), d))
CALL(fstatat64, file, live_files, "")
CALL(statx, file, live_files, "")
NUMBER(statx, statx, (a, P(b), c, d, P(e)))
CALL(access, file, live_files, "")
OLD_NUMBER(access, access, (P(a), b))
CALL(euidaccess, file, live_files, "")
CALL(faccessat, file, live_files, "")
NUMBER(faccessat, faccessat, (a, P(b), c, 0))
NUMBER(faccessat2, faccessat, (a, P(b), c, d))
CALL(readlink, file, live_files, "")
OLD_NUMBER(readlink, readlink, (P(a), P(b), c))
CALL(readlinkat, file, live_files, "")
NUMBER(readlinkat, readlinkat, (a, P(b), P(c), d))
CALL(getxattr, file, live_files, "Files of the stack have none: EOPNOTSUPP.")
NUMBER(getxattr, getxattr, (P(a), P(b), P(c), d))
CALL(lgetxattr, file, live_files, "As getxattr.")
NUMBER(lgetxattr, lgetxattr, (P(a), P(b), P(c), d))
CALL(listxattr, file, live_files, "As getxattr: an empty list.")
NUMBER(listxattr, listxattr, (P(a), P(b), c))
CALL(llistxattr, file, live_files, "As listxattr.")
NUMBER(llistxattr, llistxattr, (P(a), P(b), c))
CALL(opendir, file, live_folders, "")
CALL(fdopendir, file, live_folders, "")
CALL(closedir, file, live_folders, "")
CALL(dirfd, file, live_folders, "")
CALL(telldir, file, live_folders, "")
CALL(seekdir, file, live_folders, "")
CALL(rewinddir, file, live_folders, "")
ALIAS(eaccess, euidaccess)

CLASS(interface, "The interfaces and addresses are the stack's, asked for by its own netlink.")
CALL(getifaddrs, interface, interface_list, "")
CALL(if_nametoindex, interface, interface_list, "")
CALL(if_indextoname, interface, interface_list, "")
CALL(if_nameindex, interface, interface_list, "")

CLASS(signal, "A handler that arrives while the thread is inside the stack runs when it leaves.")
CALL(sigaction, signal, signal_interrupts, "")
DECODED(rt_sigaction, sigaction)
CALL(signal, signal, signal_restarts, "")
CALL(sysv_signal, signal, signal_forms, "")
CALL(sigset, signal, signal_forms, "")
CALL(sigignore, signal, signal_forms, "")
CALL(siginterrupt, signal, signal_forms, "")
CALL(pthread_cancel, signal, cancel_waiting, "Wakes a thread that waits in the stack, by SIGURG \
or SIGWINCH, whichever the program does not handle.")
CALL(pthread_setcanceltype, signal, cancel_asynchronous, "A thread that may end anywhere ends \
outside the stack.")
CALL(pthread_setcancelstate, signal, cancel_asynchronous, "")
ALIAS(__sigaction, sigaction)
ALIAS(__sysv_signal, sysv_signal)
ALIAS(bsd_signal, signal)
ALIAS(ssignal, signal)

CALL(sigprocmask, signal, masks, "SIGSEGV, SIGBUS and SIGSYS cannot be blocked.")
DECODED(rt_sigprocmask, sigprocmask)
CALL(pthread_sigmask, signal, masks, "As sigprocmask.")
CALL(sigsuspend, signal, masks, "As sigprocmask.")
DECODED(rt_sigsuspend, sigsuspend)
ALIAS(__sigsuspend, sigsuspend)

CLASS(ending,
      "The process's other threads are kept out of the stack before they are killed: one inside \
would leave it in the middle of a change.")
CALL(_exit, ending, ends_with_threads, "")
DECODED(exit_group, _exit)
CALL(_Exit, ending, ends_with_threads, "")
CALL(abort, ending, ends_with_threads, "Not with a handler for SIGABRT, which may come back.")

CLASS(tracing,
      "The host's. The holder, which traces all members of a stack, lets go of the process that \
the program wants to trace.")
CALL(ptrace, tracing, traces_a_member, "")
DECODED(ptrace, ptrace)

CLASS(number, "System calls that a program makes by number: through libc's syscall(), or by an \
instruction of its own (x86-64, host kernels from 5.11 on).")
CALL(syscall, number, by_number, "As the hook of the call that has this number. io_uring_setup: \
ENOSYS.")
DECODED(io_uring_setup, syscall)
CALL(prctl, number, raw_dispatch, "A program that sets PR_SET_SYSCALL_USER_DISPATCH has it: raw \
calls of that thread are its own affair.")
NUMBER(prctl, prctl, (a, b, c, d, e))
DECODED(seccomp, prctl)
CALL(pthread_create, number, raw_threads, "The new thread's raw calls are seen, too.")
CALL(thrd_create, number, raw_threads, "As pthread_create.")

CLASS(clock, "The host's clocks. Those that the vDSO cannot read are read by a system call of \
guise's own: the vDSO's would be a raw one.")
CALL(clock_gettime, clock, clocks, "")
DECODED(clock_gettime, clock_gettime)
CALL(gettimeofday, clock, clocks, "")
DECODED(gettimeofday, gettimeofday)
CALL(clock, clock, clocks, "")

CLASS(lookup,
      "What is found by a handle of libc is the hook of that name, where there is one. RTLD_NEXT and \
RTLD_DEFAULT mean what they mean to the caller.")
CALL(dlsym, lookup, by_handle, "")
CALL(dlvsym, lookup, by_handle, "")

CLASS(process,
      "A child, and the next program, are on the same stack, with the private sockets that \
the host's kernel leaves them.")
CALL(fork, process, fork_forms, "EAGAIN or ENOMEM where the stack has no room for another process.")
OLD_NUMBER(fork, fork, ())
ALIAS(__fork, fork)
CALL(_Fork, process, fork_forms, "As fork, which is seen by its handlers.")
CALL(clone, process, fork_forms,
     "A child with memory of its own is as fork's, and says of a network namespace of its own \
what unshare says.")
DECODED(clone, clone)
DECODED(clone3, clone)
CALL(execve, process, exec_forms, "LD_PRELOAD and GUISE_STACK are put back where they are missing.")
DECODED(execve, execve)
CALL(execv, process, exec_forms, "As execve.")
CALL(execvp, process, exec_forms, "As execve.")
CALL(execvpe, process, exec_forms, "As execve.")
CALL(execl, process, exec_forms, "As execve.")
CALL(execlp, process, exec_forms, "As execve.")
CALL(execle, process, exec_forms, "As execve.")
CALL(fexecve, process, exec_forms, "As execve.")
CALL(execveat, process, exec_forms, "As execve.")
DECODED(execveat, execveat)
CALL(posix_spawn, process, spawn_passes, "As execve. File actions are libc's own.")
CALL(posix_spawnp, process, spawn_passes, "As posix_spawn.")
CALL(system, process, system_forms, "By posix_spawn.")
CALL(popen, process, popen_forms, "By posix_spawn.")
CALL(pclose, process, popen_forms, "fclose does the same, as in libc.")
ALIAS(_IO_popen, popen)
CALL(unshare, process, namespaces,
     "A network namespace is the host's, and the program stays on its \
stack, which it says once on standard error.")
NUMBER(unshare, unshare, (a))
CALL(setns, process, namespaces, "As unshare.")
NUMBER(setns, setns, (a, b))

CLASS(identity, "The host's. The program's users and groups are those of its sockets, too (ss -e, \
SO_REUSEPORT, ip rule uidrange); its capabilities count on a stack with privileges = \"host\".")
CALL(setuid, identity, identity_changes, "")
DECODED(setuid, setuid)
CALL(seteuid, identity, identity_changes, "")
CALL(setreuid, identity, identity_changes, "")
DECODED(setreuid, setreuid)
CALL(setresuid, identity, identity_changes, "")
DECODED(setresuid, setresuid)
CALL(setfsuid, identity, identity_changes, "The calling thread alone.")
DECODED(setfsuid, setfsuid)
CALL(setgid, identity, identity_changes, "")
DECODED(setgid, setgid)
CALL(setegid, identity, identity_changes, "")
CALL(setregid, identity, identity_changes, "")
DECODED(setregid, setregid)
CALL(setresgid, identity, identity_changes, "")
DECODED(setresgid, setresgid)
CALL(setgroups, identity, identity_changes, "")
DECODED(setgroups, setgroups)
CALL(initgroups, identity, identity_changes, "")
CALL(setfsgid, identity, identity_changes, "As setfsuid.")
DECODED(setfsgid, setfsgid)
CALL(capset, identity, identity_changes, "As setfsuid.")
DECODED(capset, capset)

#undef CLASS
#undef CALL
#undef ALIAS
#undef NUMBER
#undef DECODED
#undef OLD_NUMBER
#undef OLD_DECODED

# SPDX-License-Identifier: GPL-2.0-only
"""Process trees of Python's own making; each prints what must be the same everywhere.

trees.py NAME [ARGUMENT] runs one of the functions below.
"""

import multiprocessing
import os
import resource
import select
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time


def ask(address, text):
    # Not create_connection(): for that libc takes locks, which the child of a program with threads
    # may find taken for ever.
    with socket.socket() as s:
        s.settimeout(60)
        s.connect(address)
        s.sendall(text)
        s.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: s.recv(4096), b""))


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.read().upper())


def forking_server():
    with socketserver.ForkingTCPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for i in range(30):
            print(ask(server.server_address, b"ask %d" % i))
        server.shutdown()


def fetch(address):
    return ask(address, b"from a worker")


def pool():
    """A server in threads of this process, its clients in pools of processes."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for way in ("fork", "spawn", "forkserver"):
            with multiprocessing.get_context(way).Pool(2) as workers:
                print(way, workers.map(fetch, [server.server_address] * 20))
        server.shutdown()


def fork_under_traffic():
    """Threads talk while others fork; every child has the listener, and no conversation suffers."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        wrong = []

        def talk(n):
            for i in range(40):
                text = b"%d of %d " % (i, n) * 200
                if ask(server.server_address, text) != text.upper():
                    wrong.append((n, i))

        talkers = [threading.Thread(target=talk, args=(n,)) for n in range(4)]
        for thread in talkers:
            thread.start()
        good = 0
        for _ in range(40):
            pid = os.fork()
            if not pid:
                name = server.socket.getsockname() == server.server_address
                os._exit(0 if name and fetch(server.server_address).isupper() else 1)
            good += os.waitpid(pid, 0)[1] == 0
        for thread in talkers:
            thread.join()
        print("children", good, "wrong", wrong)
        server.shutdown()


def many():
    """200 processes that are on the stack at the same time."""
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
        ends = []
        for i in range(200):
            if not os.fork():
                with socket.create_connection(listener.getsockname(), timeout=60) as s:
                    s.sendall(b"%d" % i)
                    s.recv(1)
                os._exit(0)
            s, _ = listener.accept()
            ends.append((s, s.recv(10)))
        print(sorted(int(text) for _, text in ends) == list(range(200)))
        for s, _ in ends:
            s.close()
        print(sum(os.wait()[1] == 0 for _ in range(200)))


def held():
    """10,000 connections at a time: four processes made them, four others took them."""
    each, parts = 2500, 4
    resource.setrlimit(resource.RLIMIT_NOFILE, (each + 200, max(each + 200, hard_limit())))
    told, tell = os.pipe()
    wait, begin = os.pipe()
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        for number in range(2 * parts):
            if os.fork():
                continue
            os.close(begin)
            if number < parts:
                mine = [listener.accept()[0] for _ in range(each)]
            else:
                mine = [socket.create_connection(listener.getsockname()) for _ in range(each)]
            os.write(tell, b"x")
            os.read(wait, 1)
            if number >= parts:
                for n, s in enumerate(mine):
                    s.sendall(b"%8d" % n)
            good = 0
            for n, s in enumerate(mine):
                text = s.recv(8, socket.MSG_WAITALL)
                good += number < parts or int(text) == n
                if number < parts:
                    s.sendall(text)
            os._exit(0 if good == each else 1)
    print("all", sum(len(os.read(told, 1)) for _ in range(2 * parts)))
    os.close(begin)
    print("good", sum(os.wait()[1] == 0 for _ in range(2 * parts)))


def hard_limit():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def churn(seconds):
    """Processes come and go in every way, with sockets in every state."""
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            there = socket.create_connection(listener.getsockname(), timeout=60)
            here, _ = listener.accept()
            for number in range(12):
                if not os.fork():
                    end_child(number % 6, there)
            for _ in range(4):  # those that talk until they are killed
                s, _ = listener.accept()
                pid = int(s.recv(8, socket.MSG_WAITALL))
                os.kill(pid, signal.SIGKILL)
                assert s.recv(1) == b""
                s.close()
            ends = sorted(os.wait()[1] for _ in range(12))
            assert ends == [0] * 8 + [signal.SIGKILL] * 4, ends
            there.close()
            here.close()


def end_child(way, there):
    if way in (0, 1):  # one of them with a thread inside
        own = socket.create_server(("127.0.0.1", 0))
        if way:
            threading.Thread(target=own.accept, daemon=True).start()
        s = socket.create_connection(there.getpeername())
        s.sendall(b"%8d" % os.getpid())
        s.recv(1)
    elif way == 2:  # half of a connection to itself, and a datagram that is not read
        with socket.create_server(("127.0.0.1", 0)) as own:
            socket.create_connection(own.getsockname()).sendall(bytes(10000))
        with socket.socket(type=socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.1", 0))
            s.sendto(bytes(5000), s.getsockname())
            os._exit(0)
    elif way == 3:
        os.set_inheritable(there.fileno(), True)
        os.execv("/bin/sh", ["sh", "-c", "true; (true) & exec true"])
    elif way == 4 and not os.fork():  # a child of its own, which outlives it
        with select.epoll() as epoll:
            epoll.register(there, select.EPOLLOUT)
            epoll.poll(1)
    os._exit(0)


def children():
    """SIGCHLD comes once for each child that the program made, and there is no other child."""
    wanted = [signal.SIGCHLD]
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        for _ in range(5):
            pid = os.fork()
            if not pid:
                os._exit(7)
            heard = signal.sigtimedwait(wanted, 60)
            print(heard and (heard.si_pid == pid, heard.si_status), os.waitpid(pid, 0)[1])
            with subprocess.Popen(["true"], stdin=s.fileno()) as process:
                heard = signal.sigtimedwait(wanted, 60)
                print(heard and (heard.si_pid == process.pid, heard.si_status), process.wait())
        print(signal.sigtimedwait(wanted, 0))
    try:
        os.wait()
    except ChildProcessError as error:
        print(error)


def inherited():
    """subprocess, with sockets for its stdin and stdout, kept open, or closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for words, keep in (
            (["sh", "-c", "cat; echo done"], False),
            (["env", "-i", "/bin/cat"], False),
            ([sys.executable, "-c", "import sys; print(sys.stdin.read()[::-1])"], True),
        ):
            there = socket.create_connection(listener.getsockname())
            end, _ = listener.accept()
            with subprocess.Popen(
                words, stdin=end.fileno(), stdout=end.fileno(), close_fds=not keep
            ) as process:
                end.close()
                there.sendall(b"to and fro")
                there.shutdown(socket.SHUT_WR)
                print(there.makefile("rb").read(), process.wait())
            there.close()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    globals()[sys.argv[1]](*sys.argv[2:])

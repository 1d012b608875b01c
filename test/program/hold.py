# SPDX-License-Identifier: GPL-2.0-only
"""hold.py wait PORT          listens, accepts one connection and reads from it
hold.py send HOST PORT     sends without end
hold.py receive HOST PORT  receives without end

Ends when its socket fails, with the error's name on stdout. "ready" comes first."""

import errno
import socket
import sys


def wait(port: int) -> None:
    with socket.create_server(("0.0.0.0", port)) as listener:
        print("ready", flush=True)
        connection, _ = listener.accept()
        while connection.recv(65536):
            pass


def send(host: str, port: int) -> None:
    with socket.create_connection((host, port)) as connection:
        print("ready", flush=True)
        while True:
            connection.sendall(bytes(65536))


def receive(host: str, port: int) -> None:
    with socket.create_connection((host, port)) as connection:
        print("ready", flush=True)
        while connection.recv(65536):
            pass


try:
    if sys.argv[1] == "wait":
        wait(int(sys.argv[2]))
    elif sys.argv[1] == "receive":
        receive(sys.argv[2], int(sys.argv[3]))
    else:
        send(sys.argv[2], int(sys.argv[3]))
except OSError as error:
    print(errno.errorcode[error.errno or 0], flush=True)

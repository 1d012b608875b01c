# SPDX-License-Identifier: GPL-2.0-only
"""echo_clients.py HOST PORT COUNT: opens COUNT connections to an echo server, and when all of them
are open has each echo twice; prints how many got back what they sent."""

import asyncio
import sys


async def echo(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    right = True
    for turn in range(2):
        message = f"connection {number}, turn {turn};".encode() * 100
        writer.write(message)
        right &= await reader.readexactly(len(message)) == message
    writer.write_eof()
    right &= await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    return right


async def main(host: str, port: int, count: int) -> None:
    open_ones = []
    for _ in range(0, count, 50):
        some = [asyncio.open_connection(host, port) for _ in range(50)]
        open_ones += await asyncio.gather(*some)
    results = await asyncio.gather(*(echo(i, *one) for i, one in enumerate(open_ones)))
    print(sum(results), "of", len(open_ones))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

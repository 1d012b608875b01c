# SPDX-License-Identifier: GPL-2.0-only
"""echo_server.py PORT: gives back what it is sent, to any number of clients at once."""

import asyncio
import sys


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def main(port: int) -> None:
    server = await asyncio.start_server(echo, "0.0.0.0", port, backlog=2048)
    print("ready", flush=True)
    await server.serve_forever()


asyncio.run(main(int(sys.argv[1])))

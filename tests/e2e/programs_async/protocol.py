"""A database's protocol over a socket, as its clients speak it: messages that begin with their length."""

import asyncio
import struct

from timing import finish, timed

CLIENTS = 10
QUERIES = 60


def send(writer, message):
    writer.write(struct.pack("!I", len(message)) + message)


async def serve(reader, writer):
    while True:
        try:
            with timed("request"):
                (size,) = struct.unpack("!I", await reader.readexactly(4))  #: request
            query = await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            break
        with timed("lookup"):
            await asyncio.sleep(0.02)  #: lookup
        send(writer, query * 10)
        await writer.drain()
    writer.close()


class Connection:
    async def open(self, port):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)

    async def fetch(self, query):
        send(self.writer, query)
        with timed("reply"):
            (size,) = struct.unpack("!I", await self.reader.readexactly(4))  #: reply
        return await self.reader.readexactly(size)


async def client(port):
    connection = Connection()
    await connection.open(port)
    for number in range(QUERIES):
        query = b"select %d" % number
        assert await connection.fetch(query) == query * 10
        with timed("think"):
            await asyncio.sleep(0.01)  #: think
    connection.writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with timed("all"):
        await asyncio.gather(*(client(port) for _ in range(CLIENTS)))  #: all
    server.close()


asyncio.run(main())
finish()

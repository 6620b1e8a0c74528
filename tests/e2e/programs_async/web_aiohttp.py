"""A server of aiohttp's, under load from its own client in the same loop."""

import asyncio

import aiohttp
from aiohttp import web

from timing import finish, timed

CLIENTS = 10
REQUESTS = 25


async def fetch_row():
    with timed("database"):
        await asyncio.sleep(0.03)  #: database
    return {"name": "row"}


async def page(request):
    row = await fetch_row()
    with timed("cache"):
        await asyncio.sleep(0.005)  #: cache
    return web.json_response(row)


async def client(session, address):
    for _ in range(REQUESTS):
        with timed("get"):
            async with session.get(address) as response:  #: get
                assert response.status == 200
                assert await response.json() == {"name": "row"}  #: get


async def main():
    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = "http://127.0.0.1:%d/" % runner.addresses[0][1]
    async with aiohttp.ClientSession() as session:
        with timed("all"):
            await asyncio.gather(*(client(session, address) for _ in range(CLIENTS)))  #: all
    await runner.cleanup()


asyncio.run(main())
finish()

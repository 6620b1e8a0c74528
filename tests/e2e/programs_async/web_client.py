"""Load for a server on the loopback interface, by httpx: web_client.py PORT"""

import asyncio
import sys

import httpx

from timing import finish, timed

CLIENTS = 10
REQUESTS = 20


async def client(session):
    for number in range(REQUESTS):
        with timed("get"):
            response = await session.get("/rows/%d" % number)  #: get
        assert response.json() == {"number": number}


async def main():
    async with httpx.AsyncClient(base_url="http://127.0.0.1:" + sys.argv[1], trust_env=False) as session:
        with timed("all"):
            await asyncio.gather(*(client(session) for _ in range(CLIENTS)))  #: all


asyncio.run(main())
finish()

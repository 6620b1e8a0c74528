"""A FastAPI application in uvicorn, under load from a process with httpx: web_client.py."""

import asyncio
import json
import os
import socket
import sys

import fastapi
import uvicorn

from timing import finish, sums, timed

app = fastapi.FastAPI()


async def fetch_row(number):
    with timed("database"):
        await asyncio.sleep(0.03)  #: database
    return {"number": number}


@app.get("/rows/{number}")
async def row(number: int):
    result = await fetch_row(number)
    with timed("cache"):
        await asyncio.sleep(0.005)  #: cache
    return result


async def load(port):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "web_client.py")
    client = await asyncio.create_subprocess_exec(
        sys.executable, program, str(port), stdout=asyncio.subprocess.PIPE
    )
    with timed("load"):
        output, _ = await client.communicate()  #: load
    assert client.returncode == 0
    return json.loads(output)


async def main():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="warning", loop="asyncio", lifespan="off")
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        listening.listen()
        of_client = await load(listening.getsockname()[1])
        server.should_exit = True
        await serving
    sums.update(of_client["sections"])


asyncio.run(main())
finish()

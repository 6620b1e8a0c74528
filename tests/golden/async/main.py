import asyncio
import json


async def fetch(n):
    await asyncio.sleep(n)
    return n


async def page(n):
    first = await fetch(n)
    return json.dumps([first, await fetch(n)])


def busy():
    return sum(range(5_000_000))


async def main():
    pages = [asyncio.create_task(page(0.2)) for _ in range(10)]
    busy()
    await asyncio.gather(*pages)


if __name__ == "__main__":
    asyncio.run(main())

"""Send a message to each person of a csv file, with aiohttp: `send_aiohttp.py FILE URL CONCURRENCY`."""

import asyncio
import csv
import sys
from pathlib import Path

import aiohttp


async def main(file: str, base_url: str, concurrency: int) -> None:
    with Path(file).open(encoding="utf-8") as lines:
        people = iter([*csv.DictReader(lines)])
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def work() -> None:
            for person in people:
                text = f"Hola {person['name']}, su pedido sale hoy"
                form = {"client": "1", "key": "key", "phone": person["phone"], "sms": text}
                async with session.post(f"{base_url}/send-sms", data=form) as response:
                    response.raise_for_status()
                    await response.json()

        await asyncio.gather(*(work() for _ in range(concurrency)))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

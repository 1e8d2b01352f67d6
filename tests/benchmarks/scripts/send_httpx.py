"""Send a message to each person of a csv file, with httpx (async): `send_httpx.py FILE URL CONCURRENCY`."""

import asyncio
import csv
import sys
from pathlib import Path

import httpx


async def main(file: str, base_url: str, concurrency: int) -> None:
    with Path(file).open(encoding="utf-8") as lines:
        people = iter([*csv.DictReader(lines)])
    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    async with httpx.AsyncClient(limits=limits, timeout=30) as client:

        async def work() -> None:
            for person in people:
                text = f"Hola {person['name']}, su pedido sale hoy"
                form = {"client": "1", "key": "key", "phone": person["phone"], "sms": text}
                response = await client.post(f"{base_url}/send-sms", data=form)
                response.raise_for_status().json()

        await asyncio.gather(*(work() for _ in range(concurrency)))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

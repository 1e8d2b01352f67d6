"""Send a message to each person of a csv file, with requests and threads: `send_requests.py FILE URL CONCURRENCY`."""

import csv
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

local = threading.local()


def send(base_url: str, person: dict[str, str]) -> None:
    if not hasattr(local, "session"):
        local.session = requests.Session()
    text = f"Hola {person['name']}, su pedido sale hoy"
    form = {"client": "1", "key": "key", "phone": person["phone"], "sms": text}
    response = local.session.post(f"{base_url}/send-sms", data=form, timeout=30)
    response.raise_for_status()
    response.json()


def main(file: str, base_url: str, concurrency: int) -> None:
    with Path(file).open(encoding="utf-8") as lines, ThreadPoolExecutor(concurrency) as pool:
        for _ in pool.map(lambda person: send(base_url, person), csv.DictReader(lines)):
            pass


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

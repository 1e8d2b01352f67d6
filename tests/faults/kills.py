"""Kill real processes of msgctl while they send: `python tests/faults/kills.py --kills 200 --store postgresql`.

Machines of equal names share a store and send to a service on loopback. A process is killed at a random moment, and
another machine continues its job. With PostgreSQL, some processes instead lose their session, the database is killed,
the network is cut during a commit, or a process is stopped until another machine has taken its job. Clocks are an hour
off.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.sender import check
from msgctl.config import urls
from msgctl.store import jobs as store_jobs
from msgctl.store.store import open_store
from support import PATIENCE
from support.postgres import Cluster, running
from support.relay import relaying
from support.server import Server

NUMBER = 40
"""Recipients of a job."""
BATCH, CONCURRENCY = 2, 4
CLOCK = "import os, time\nnow = time.time\ntime.time = lambda: now() + float(os.environ['CLOCK_OFFSET'])\n"
"""Code that Python runs at its start, so that the clock of a machine is wrong."""


class Room:
    """Three machines that share a store and a service. ``kills`` counts killed processes."""

    def __init__(self, directory: Path, store: str | Cluster, server: Server, seed: int) -> None:
        if isinstance(store, Cluster):
            self.cluster, store = store, store.url()
        self.is_on_server = store.startswith("postgresql:")
        self.directory, self.store, self.server, self.dice = directory, store, server, Random(seed)
        self.account = urls.account(server.base_url, "3")
        self.jobs = self.kills = 0
        (directory / "hooks").mkdir()
        self.plant("")

    def plant(self, code: str) -> None:
        """Run code at the start of the next processes, for example to plant an error in msgctl."""
        (self.directory / "hooks" / "sitecustomize.py").write_text(CLOCK + code)

    def start(self, machine: int, *arguments: str, store: str = "", offset: float = 0.0) -> subprocess.Popen[str]:
        """Start msgctl on a machine; ``offset`` is the error of its clock in seconds."""
        home = self.directory / f"machine-{machine}"
        home.mkdir(exist_ok=True)
        environ = {name: text for name, text in os.environ.items() if not name.startswith(("MSGCTL_", "XDG_"))}
        environ |= {
            "HOME": str(home),
            "MSGCTL_STORE": store or self.store,
            "MSGCTL_BASE_URL": self.server.base_url,
            "MSGCTL_CLIENT": "3",
            "MSGCTL_KEY": "the-key",
            "PYTHONPATH": str(self.directory / "hooks"),
            "CLOCK_OFFSET": str(offset),
        }
        command = [sys.executable, "-m", "msgctl", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=environ)

    def new_job(self, number: int = NUMBER) -> Job:
        self.jobs += 1
        return Job(self, self.jobs, number)


class Job:
    """A job with a name: the same command continues it on any machine."""

    def __init__(self, room: Room, job: int, number: int) -> None:
        self.room = room
        self.name = f"job-{job}"
        self.phones = [f"57{3_000_000_000 + 40_000 * job + line}" for line in range(number)]
        self._file = room.directory / f"{self.name}.csv"
        self._file.write_text("\n".join(["phone", *self.phones]))

    def begin(self, machine: int, *more: str, store: str = "", offset: float | None = None) -> subprocess.Popen[str]:
        """Start or continue the job, on a machine whose clock may be wrong."""
        if offset is None:
            offset = self.room.dice.choice((0.0, 3600.0, -3600.0))
        options = ("--name", self.name, "--batch-size", str(BATCH), "--concurrency", str(CONCURRENCY), "--yes", *more)
        line = ("sms", "bulk", str(self._file), "-m", f"Text of {self.name}", *options)
        return self.room.start(machine, *line, store=store, offset=offset)

    def arrived(self) -> Counter[str]:
        times = self.room.server.arrived()
        return Counter({phone: times[phone] for phone in self.phones if times[phone]})

    def wait(self, process: subprocess.Popen[str], number: int) -> bool:
        """Wait until this many recipients were sent to; return whether the process is still running."""
        while process.poll() is None and self.arrived().total() < number:
            time.sleep(0.005)
        return process.poll() is None

    def finish(self) -> store_jobs.Job:
        """Continue the job on other machines until it is done, and check the result."""
        with closing(open_store(self.room.store)) as store:
            for machine in range(10):
                job = store_jobs.named(store, self.room.account, self.name)
                if job is not None and job.state == "done":
                    check(store, job, self.phones, self.arrived())
                    return job
                end(self.begin(machine % 3))
        raise AssertionError(f"{self.name} does not end")


def end(process: subprocess.Popen[str], *, kill: bool = False) -> int:
    """Wait for a process to end, after a kill if requested. Return its exit code."""
    if kill:
        process.kill()
    _, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err, err
    return process.returncode


def killed(room: Room) -> None:
    """Kill the processes of a job at random moments."""
    job = room.new_job()
    for _ in range(room.dice.randint(4, 8)):
        process = job.begin(room.dice.randrange(3))
        before = job.arrived().total()
        if room.dice.random() < 0.3:
            time.sleep(room.dice.uniform(0, 1.0))
        else:
            job.wait(process, before + room.dice.randint(1, 8))
            time.sleep(room.dice.uniform(0, 0.02))
        room.kills += process.poll() is None
        end(process, kill=True)
    job.finish()


def due_on_three_machines(room: Room) -> None:
    """Schedule two jobs, and run the due ones on three machines at once."""
    scheduled = [room.new_job(), room.new_job()]
    # With PostgreSQL, the clock of the server decides.
    seconds, offset = (20, 0.0) if room.is_on_server else (7200, 4 * 3600)
    begins = time.time() + seconds
    for job in scheduled:
        end(job.begin(0, "--at", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begins)), offset=0.0))
    if room.is_on_server:
        time.sleep(max(0.0, begins - time.time()))
    for process in [room.start(machine, "job", "run-due", offset=offset) for machine in range(3)]:
        end(process)
    for job in scheduled:
        assert len(job.arrived()) == NUMBER, f"{job.name} was sent to {len(job.arrived())} of {NUMBER} people"
        job.finish()


# --- faults of PostgreSQL and of the network


def stopped(room: Room) -> None:
    """Stop a process, end its session, let another machine finish its job, and continue the process."""
    job = room.new_job()
    process = job.begin(0)
    if job.wait(process, room.dice.randint(1, 20)):
        process.send_signal(signal.SIGSTOP)
        room.cluster.disconnect()
        end(job.begin(1))
        process.send_signal(signal.SIGCONT)
    end(process)
    job.finish()


def session_lost(room: Room) -> None:
    """End the session of a process that lives."""
    job = room.new_job()
    process = job.begin(0)
    if job.wait(process, room.dice.randint(1, 20)):
        room.cluster.disconnect()
        other = job.begin(1)
        end(process)
        end(other)
    job.finish()


def database_killed(room: Room) -> None:
    """Kill all processes of the database, and start it again."""
    job = room.new_job()
    process = job.begin(0)
    job.wait(process, room.dice.randint(1, 20))
    room.cluster.kill()
    time.sleep(room.dice.choice((0.0, 0.5)))
    room.cluster.start()
    end(process)
    job.finish()


def network_cut(room: Room) -> None:
    """Cut the connection with the database during a commit, before or after it is stored."""
    job = room.new_job()
    with cutting(room.cluster.port, room.dice.randint(3, 12), after=room.dice.random() < 0.5) as port:
        end(job.begin(0, store=room.cluster.url(port=port)))
    job.finish()


@contextmanager
def cutting(port: int, number: int, *, after: bool) -> Iterator[int]:
    """A proxy that cuts all connections at a commit: before the server gets it or, with ``after``, once it responds."""
    commits = [0]

    def serve(client: socket.socket, server: socket.socket) -> None:
        others = {client: server, server: client}
        while True:
            for source in select.select([client, server], [], [], PATIENCE)[0]:
                chunk = source.recv(65536)
                if source is (server if after else client):
                    commits[0] += chunk.count(b"COMMIT")
                if not chunk or commits[0] >= number:
                    return
                others[source].sendall(chunk)

    with relaying(port, serve) as relay:
        yield relay


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--others", type=int, default=5, help="how often each other fault happens")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    started, counts, wrong = time.monotonic(), Counter[str](), 0
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(Server(delay=0.01))
        store: str | Cluster = str(directory / "store.sqlite3")
        tasks = [due_on_three_machines] * given.others
        if given.store == "postgresql":
            store = stack.enter_context(running("fsync=on"))
            tasks += [stopped, session_lost, database_killed, network_cut] * given.others
        room = Room(directory, store, server, given.seed)
        while tasks or room.kills < given.kills:
            task = tasks.pop() if tasks else killed
            counts[task.__name__.replace("_", " ")] += 1
            try:
                task(room)
            except AssertionError as error:
                wrong += 1
                print(f"{task.__name__} of job {room.jobs}: {error}", flush=True)
            print(f"\r{room.kills} kills, {dict(counts)}, {wrong} wrong ", end="", file=sys.stderr, flush=True)
    summary = ", ".join(f"{name} {number}" for name, number in counts.items())
    print(file=sys.stderr)
    print(f"{given.store}: {room.kills} kills; {summary}: {wrong} wrong, {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

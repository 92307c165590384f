"""What `coplay serve` costs while people watch a run that trains.

A server is started on a folder with one run, to which rows are appended. Watchers connect, half of
them to the list with the run ticked, half to the run's page. The processor time of the server is
read from the system.

    python benchmarks/watchers.py --watchers 50 --seconds 60
"""

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from websockets.asyncio.client import connect

SEATS, SEEDS, METRICS = 4, 2, 20


def make_run(folder: Path) -> Path:
    folder.mkdir(parents=True)
    settings = {"seed": 0, "seeds": SEEDS, "steps": 10_000_000, "seating": ""}
    config = {"player": "ppo", "game_name": "stag-hunt", "run": settings}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def append(folder: Path, step: int) -> None:
    names = [f"metric_{number}/seat_{seat}" for number in range(METRICS) for seat in range(SEATS)]
    with open(folder / "metrics.jsonl", "a") as file:
        for seed in range(SEEDS):
            numbers = {name: random.random() for name in ["team_mean", *names]}
            file.write(json.dumps({"step": step, "seed": seed, **numbers}) + "\n")


async def watch(port: int, asked: dict, until: float, counts: list[int]) -> None:
    """Look on until a moment; counts the news."""
    origin = f"http://127.0.0.1:{port}"
    async with connect(f"ws://127.0.0.1:{port}/live", origin=origin, max_size=None) as socket:
        await socket.recv()
        await socket.send(json.dumps(asked))
        counts.append(0)
        place = len(counts) - 1
        while (left := until - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(socket.recv(), left)
            except TimeoutError:
                return
            counts[place] += 1


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(pid: int, port: int, run: Path, watchers: int, seconds: float) -> dict:
    """Rows come twice a second meanwhile."""
    counts: list[int] = []
    until = time.monotonic() + seconds + 5
    ticked, page = {"ticked": ["run"], "metric": "team_mean"}, {"page": "run"}
    tasks = [
        asyncio.create_task(watch(port, page if number % 2 else ticked, until, counts))
        for number in range(watchers)
    ]
    await asyncio.sleep(5)
    begun, before = time.monotonic(), processor_seconds(pid)
    step = 100_000
    while time.monotonic() - begun < seconds:
        step += 256
        append(run, step)
        await asyncio.sleep(0.5)
    used, took = processor_seconds(pid) - before, time.monotonic() - begun
    await asyncio.gather(*tasks)
    return {
        "watchers": watchers,
        "seconds": round(took, 1),
        "processor_seconds": round(used, 2),
        "share_of_a_core": round(used / took, 4),
        "least_news": min(counts),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--watchers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, socket.socket() as probe:
        run = make_run(Path(place) / "runs" / "run")
        for step in range(256, 100_000, 256):
            append(run, step)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        command = [sys.executable, "-m", "coplay", "serve", str(run.parent), "--port", str(port)]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None and "open http" in server.stderr.readline()
            time.sleep(2)
            work = measure(server.pid, port, run, given.watchers, given.seconds)
            print(json.dumps(asyncio.run(work)))
        finally:
            server.terminate()
            server.wait(30)


if __name__ == "__main__":
    main()

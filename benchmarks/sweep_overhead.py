"""What a sweep costs beside a plain loop of two processes over the same short runs.

`python benchmarks/sweep_overhead.py` runs 16 settings by `coplay sweep --on local:2` and by two
loops of `coplay train`, in turns, on a quiet machine. Beside other work the ratio of processor time
says more than that of time by the clock. Compiled programs are in the cache from before for both.
It also says how long the first training of a program compiles, and the next one
with another seed. With `--ray` it times Ray's own start instead, if Ray is installed.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RATES = [f"{0.0002 * (1 + index):.6g}" for index in range(16)]
SMALL = [
    *("ppo", "--game", "matrix:stag-hunt", "--network.hidden", "4", "--copies", "16"),
    *("--rollout", "16", "--steps", "1024", "--episodes", "10", "--no-pictures"),
]
KINDS = ("clock", "processor")
FIELD = "optimiser.learning-rate"
VARIABLES = {
    **{"PJRT_NPROC": "1", "OMP_NUM_THREADS": "1"},
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def coplay(folder: Path, *arguments: str, alone: bool = False) -> None:
    """A command that must succeed. alone: with one thread, as a sweep starts its runs."""
    subprocess.run(
        [sys.executable, "-m", "coplay", *arguments],
        cwd=folder,
        env=os.environ | (VARIABLES if alone else {}),
        capture_output=True,
        check=True,
    )


def by_sweep(folder: Path) -> None:
    vary = f"{FIELD}={','.join(RATES)}"
    own = ["--vary", vary, "--on", "local:2", "--no-audit", "--no-measure", "--confirm", "0"]
    coplay(folder, "sweep", *SMALL, *own, "--out", "sweep")


def by_loops(folder: Path) -> None:
    def one(number: int) -> None:
        rate = [f"--{FIELD}", RATES[number], "--out", f"run-{number}"]
        coplay(folder, "train", *SMALL, *rate, "--json", alone=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(len(RATES))))


def timed(way) -> tuple[float, float]:
    """Seconds by the clock, and of the processor with all processes below this one."""
    with tempfile.TemporaryDirectory() as folder:
        clock, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        way(Path(folder))
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        return time.perf_counter() - clock, cpu


def compiling() -> list[float]:
    """Seconds of compiling of two runs that differ in their seed, with an empty cache."""
    found = []
    with tempfile.TemporaryDirectory() as home:
        for seed in ("0", "1"):
            out = Path(home) / seed
            given = ["--seed", seed, "--out", str(out), "--network.hidden", "5"]
            variables = os.environ | VARIABLES | {"XDG_CACHE_HOME": home}
            command = [sys.executable, "-m", "coplay", "train", *SMALL, *given]
            subprocess.run(command, env=variables, capture_output=True, check=True)
            found.append(json.loads((out / "summary.json").read_text())["compile_seconds"])
    return found


def ray_start() -> list[float]:
    """Seconds that Ray takes to start on this machine, and to stop."""
    script = (
        "import time; a = time.perf_counter(); import ray; b = time.perf_counter(); "
        "ray.init(include_dashboard=False, log_to_driver=False, num_cpus=2, "
        "_node_ip_address='127.0.0.1'); c = time.perf_counter(); "
        "ray.get(ray.remote(lambda: 1).remote()); d = time.perf_counter(); ray.shutdown(); "
        "print(b - a, c - b, d - c, time.perf_counter() - d)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return [float(text) for text in done.stdout.split()[-4:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--no-fill", dest="fill", action="store_false", help="the cache is filled")
    given = parser.parse_args()
    if given.ray:
        for name, seconds in zip(
            ("import", "start", "first task", "stop"),
            map(statistics.median, zip(*(ray_start() for _ in range(3)), strict=True)),
            strict=True,
        ):
            print(f"Ray: {name} {seconds:.1f} s")
        return
    if given.fill:
        first, second = compiling()
        print(f"compiling: {first:.1f} s, the same program with another seed: {second:.1f} s")
        timed(by_loops)
    ratios = []
    for turn in range(given.turns):
        order = (by_sweep, by_loops) if turn % 2 else (by_loops, by_sweep)
        seconds = {way: timed(way) for way in order}
        pairs = list(zip(seconds[by_sweep], seconds[by_loops], strict=True))
        ratios.append([mine / theirs for mine, theirs in pairs])
        for kind, (mine, theirs), ratio in zip(KINDS, pairs, ratios[-1], strict=True):
            print(
                f"{kind}: sweep {mine:.1f} s, loops {theirs:.1f} s, ratio {ratio:.3f}", flush=True
            )
    for kind, ratio in zip(KINDS, map(statistics.median, zip(*ratios, strict=True)), strict=True):
        print(f"{kind}: median ratio of {given.turns} turns: {ratio:.3f}")


if __name__ == "__main__":
    main()

"""A real Ray cluster on this machine, a head and two nodes of one core, and what can die there."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coplay.core.reading import read_json
from tests.faults.tiny import outcome

pytestmark = pytest.mark.slow

HOME = str(Path(__file__).parents[2])
CLUSTER = """
import sys, time
from ray.cluster_utils import Cluster
made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
print("head", made.head_node.all_processes["gcs_server"][0].process.pid, flush=True)
for _ in range(int(sys.argv[1])):
    node = made.add_node(num_cpus=1)
    print("node", node.all_processes["raylet"][0].process.pid, flush=True)
print("address", made.address, flush=True)
sys.stdin.read()
made.shutdown()
"""
"""A cluster until its standard input closes. It says which processes are its nodes."""


def variables() -> dict[str, str]:
    own = {"PYTHONPATH": HOME, "RAY_USAGE_STATS_ENABLED": "0", "PJRT_NPROC": "1"}
    own["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return os.environ | own


class Cluster:
    """nodes: processes, each the root of all that runs on a node."""

    def __init__(self, nodes: int):
        pytest.importorskip("ray")
        given = [sys.executable, "-c", CLUSTER, str(nodes)]
        self.process = subprocess.Popen(
            given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables()
        )
        self.nodes: list[int] = []
        self.head = 0
        assert self.process.stdout is not None
        for line in self.process.stdout:
            kind, _, value = line.strip().partition(" ")
            if kind == "address":
                self.on = f"ray:{value}"
                break
            if kind == "node":
                self.nodes.append(int(value))
            if kind == "head":
                self.head = int(value)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


@contextmanager
def cluster(nodes: int = 2) -> Iterator[Cluster]:
    made = Cluster(nodes)
    try:
        yield made
    finally:
        made.close()


def children(process: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(rest[1]), []).append(int(path.parent.name))
    found, left = [], [process]
    while left:
        found.append(left.pop())
        left += parents.get(found[-1], [])
    return found


def kill_tree(process: int) -> None:
    """As if the power went: no process of a node can say or save anything."""
    for one in children(process):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            continue


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "coplay", *arguments]


def begin(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    given: Any = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command(*arguments), cwd=folder, env=variables(), **given)


def said(process: subprocess.Popen[str], seconds: float = 900.0) -> str:
    return process.communicate(timeout=seconds)[0]


def wait_for(found: Callable[[], Any], process: subprocess.Popen[str]) -> Any:
    for _ in range(3000):
        if value := found():
            return value
        assert process.poll() is None, said(process)
        time.sleep(0.1)
    raise TimeoutError


TINY = [
    *("--game", "matrix:stag-hunt", "--copies", "16", "--rollout", "16", "--block", "8"),
    *("--network.hidden", "4", "--episodes", "50", "--checkpoint-every", "4096"),
]
TRAIN = ["train", "ppo", *TINY, "--steps", "163840", "--seeds", "8", "--no-pictures"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process with one thread makes of the eight seeds."""
    folder = tmp_path_factory.mktemp("alone")
    process = begin(folder, *TRAIN, "--out", "run")
    text = said(process)
    assert process.returncode == 0, text
    return outcome(folder / "run")


@pytest.mark.parametrize("files", ["shared", "returned"])
def test_a_node_is_killed_and_all_seeds_are_bit_equal(
    tmp_path: Path, alone: dict[str, Any], files: str
) -> None:
    """Eight seeds on two nodes; one of them dies with -9 while it trains."""
    with cluster() as made:
        given = [*TRAIN, "--on", made.on, "--files", files, "--out", "run"]
        process = begin(tmp_path, *given)
        parts = tmp_path / "run.parts"
        wait_for(lambda: list(parts.glob("seed-*/checkpoints/step-*[1-9]*.npz")), process)
        kill_tree(made.nodes[1])
        text = said(process)
        assert process.returncode == 0, text
        assert "its machine is lost; once more" in text
    assert outcome(tmp_path / "run") == alone
    assert not parts.exists()


SWEEP = ["sweep", "ppo", *TINY, "--steps", "163840", "--vary", "discount=0.8,0.9,0.95,0.99"]
SWEEP += ["--no-audit", "--no-measure", "--confirm", "0"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a sweep on this machine finds."""
    folder = tmp_path_factory.mktemp("swept")
    process = begin(folder, *SWEEP, "--on", "local:2", "--out", "sweep")
    text = said(process)
    assert process.returncode == 0, text
    return results(folder / "sweep")


def results(folder: Path) -> dict[str, Any]:
    found = {path.name: outcome(path) for path in sorted((folder / "trials").iterdir())}
    state = read_json(folder / "sweep.json")
    return found | {"values": [one["values"] for one in state["trials"]], "best": state["best"]}


def checkpoints(sweep: Path) -> list[Path]:
    return list(sweep.glob("trials/*/checkpoints/step-*[1-9]*.npz"))


def test_workers_the_driver_and_the_head_are_killed(tmp_path: Path, swept: dict[str, Any]) -> None:
    """One after the other in the same sweep, which is taken up on another cluster at last."""
    sweep = tmp_path / "sweep"
    with cluster() as made:
        process = begin(tmp_path, *SWEEP, "--on", made.on, "--out", "sweep")
        wait_for(lambda: checkpoints(sweep), process)
        run = [one for one in children(made.nodes[0]) if b"train" in words_of(one)]
        assert run, "no run was found on the node"
        kill_tree(run[0])
        wait_for(lambda: any(read_tries(sweep)), process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        # What the dead driver began is gone before somebody takes it up, or is waited for.
        process = begin(tmp_path, "sweep", "--resume", "sweep", "--on", made.on)
        wait_for(lambda: len(checkpoints(sweep)) > 2, process)
        os.kill(made.head, signal.SIGKILL)
        text = said(process)
        assert process.returncode == 1, text
        assert "the Ray cluster is lost" in text and "coplay sweep --resume sweep" in text, text
        assert "Traceback" not in text
        for node in made.nodes:
            kill_tree(node)
    with cluster() as made:
        process = begin(tmp_path, "sweep", "--resume", "sweep", "--on", made.on)
        text = said(process)
        assert process.returncode == 0, text
    assert results(sweep) == swept


def words_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def read_tries(sweep: Path) -> list[int]:
    return [one["tries"] for one in read_json(sweep / "sweep.json")["trials"]]


def test_two_sweeps_at_once_on_one_cluster(tmp_path: Path, swept: dict[str, Any]) -> None:
    with cluster() as made:
        both = [
            begin(tmp_path, *SWEEP, "--on", made.on, "--files", files, "--out", files)
            for files in ("shared", "returned")
        ]
        third = begin(tmp_path, *SWEEP, "--on", made.on, "--out", "shared")
        texts = [said(one) for one in (*both, third)]
    codes = [one.returncode for one in (*both, third)]
    assert sorted(codes) == [0, 0, 2], texts
    assert results(tmp_path / "shared") == results(tmp_path / "returned") == swept

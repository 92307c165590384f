"""A real Ray cluster on this machine, a head and two nodes of one core, and what can die there."""

import os
import signal
import socket
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
import os, signal, subprocess, sys, time
import ray
from ray.cluster_utils import Cluster
made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
print("head", made.head_node.all_processes["gcs_server"][0].process.pid, flush=True)
for _ in range(int(sys.argv[1])):
    node = made.add_node(num_cpus=1)
    print("node", node.all_processes["raylet"][0].process.pid, flush=True)
apart = None
if hidden := sys.argv[2]:
    start = f"{sys.executable} -m ray.scripts.scripts start --block --num-cpus=1"
    apart = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", f"mount -t tmpfs tmpfs {hidden} && exec {start} "
        f"--address={made.address}"], stdout=sys.stderr, start_new_session=True)
    ray.init(address=made.address, log_to_driver=False)
    while len([one for one in ray.nodes() if one["Alive"]]) < 2 + int(sys.argv[1]):
        time.sleep(0.2)
    ray.shutdown()
print("address", made.address, flush=True)
sys.stdin.read()
if apart is not None:
    os.killpg(apart.pid, signal.SIGKILL)
    apart.wait()
made.shutdown()
"""
"""A cluster until its standard input closes. It says which processes are its nodes. With a second
word, one more node sees an empty disk in the place of that folder."""


def variables() -> dict[str, str]:
    own = {"PYTHONPATH": HOME, "RAY_USAGE_STATS_ENABLED": "0", "PJRT_NPROC": "1"}
    own["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return os.environ | own


class Cluster:
    """nodes: processes, each the root of all that runs on a node."""

    def __init__(self, nodes: int, hidden: str):
        pytest.importorskip("ray")
        given = [sys.executable, "-c", CLUSTER, str(nodes), hidden]
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
def cluster(nodes: int = 2, hidden: str = "") -> Iterator[Cluster]:
    """hidden: a folder that one more node does not see."""
    made = Cluster(nodes, hidden)
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
    # A shell in the background ignores Ctrl-C, and so would all that it starts.
    given["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
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
        run = wait_for(lambda: training(made), process)
        kill_tree(run[0])
        wait_for(lambda: any(read_tries(sweep)), process)
        process.send_signal(signal.SIGINT)
        text = said(process)
        assert process.returncode == 130 and "coplay sweep --resume sweep" in text, text
        process = begin(tmp_path, "sweep", "--resume", "sweep", "--on", made.on)
        wait_for(lambda: training(made), process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        # What the dead driver began is gone before somebody takes it up, or is waited for.
        began = time.time()
        process = begin(tmp_path, "sweep", "--resume", "sweep", "--on", made.on)
        wait_for(lambda: taken_up(sweep, began), process)
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


def taken_up(sweep: Path, since: float) -> bool:
    """Whether a command that was begun then has started a trial."""
    file = sweep / "sweep.json"
    states = [one["state"] for one in read_json(file)["trials"]]
    return file.stat().st_mtime > since and "running" in states


def training(made: Cluster) -> list[int]:
    """The processes of runs, on all nodes."""
    found = [one for node in made.nodes for one in children(node)]
    return [one for one in found if b"train" in words_of(one)]


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


def mounts(folder: Path, size: str) -> bool:
    """Put a disk of this size in the place of a folder."""
    folder.mkdir()
    given = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    return subprocess.run(given, capture_output=True).returncode == 0


def test_a_disk_that_fills_up(tmp_path: Path, swept: dict[str, Any]) -> None:
    """The disk of the sweep is full in the middle; once there is room, the sweep goes on."""
    disk = tmp_path / "disk"
    if not mounts(disk, "1500k"):
        pytest.skip("only root can mount a small disk")
    try:
        with cluster() as made:
            process = begin(tmp_path, *SWEEP, "--on", made.on, "--out", "disk/sweep")
            text = said(process)
            assert process.returncode == 1 and "Traceback" not in text, text
            assert "no space left on device" in text and "--resume disk/sweep" in text, text
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            process = begin(tmp_path, "sweep", "--resume", "disk/sweep", "--on", made.on)
            text = said(process)
            assert process.returncode == 0, text
        assert results(disk / "sweep") == swept
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_node_that_does_not_see_the_folder(tmp_path: Path, swept: dict[str, Any]) -> None:
    """Such a node is found out: its files are returned, or the command is refused."""
    apart = tmp_path / "apart"
    apart.mkdir()
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", str(apart)]).returncode:
        pytest.skip("only root can hide a folder from a node")
    with cluster(nodes=0, hidden=str(apart)) as made:
        process = begin(apart, *SWEEP, "--on", made.on, "--files", "shared", "--out", "sweep")
        text = said(process)
        assert process.returncode == 2, text
        assert text.count("\n") == 1 and "does not see" in text and "--files returned" in text
        assert not list(apart.iterdir())
        process = begin(apart, *SWEEP, "--on", made.on, "--out", "sweep")
        text = said(process)
        assert process.returncode == 0 and "files come back through Ray" in text, text
    assert results(apart / "sweep") == swept
    assert "evaluation" in (apart / "sweep" / "logs" / "000.txt").read_text()


BREAKS = """
        if self.config.cells == 7:
            raise ValueError("seven cells are too many")
"""


def test_a_trial_that_raises(tmp_path: Path) -> None:
    """It is tried three times and reported; the others go on."""
    lines = Path(HOME, "examples", "own_game.py").read_text().splitlines(keepends=True)
    (step,) = [index for index, line in enumerate(lines) if line.startswith("    def step(")]
    (tmp_path / "game.py").write_text("".join([*lines[: step + 1], BREAKS, *lines[step + 1 :]]))
    given = ["--load", "game.py", "sweep", "ppo", "--game", "rendezvous", "--copies", "16"]
    given += ["--rollout", "16", "--steps", "4096", "--network.hidden", "4", "--episodes", "20"]
    given += ["--vary", "game.cells=6,7,8", "--no-audit", "--no-measure", "--confirm", "0"]
    with cluster() as made:
        process = begin(tmp_path, *given, "--on", made.on, "--out", "sweep")
        text = said(process)
    assert process.returncode == 1 and "Traceback" not in text, text
    found = read_json(tmp_path / "sweep" / "sweep.json")["trials"]
    assert [one["state"] for one in found] == ["finished", "failed", "finished"]
    assert found[1]["tries"] == 3 and "seven cells are too many" in found[1]["words"]
    assert "trial 001 failed 3 times and is left out" in text, text
    assert "seven cells" in (tmp_path / "sweep" / "logs" / "001.txt").read_text()


def test_a_cluster_that_asks_for_a_token(tmp_path: Path) -> None:
    """Who shows its token is let in, whoever does not reads in one sentence what to do."""
    pytest.importorskip("ray")
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("a" * 64)
    home = variables() | {"HOME": str(tmp_path)}
    token = {"RAY_AUTH_MODE": "token"}
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--num-cpus=1"]
    start += ["--port=6411", "--include-dashboard=false", "--block"]
    head = subprocess.Popen(start, env=home | token, stdout=subprocess.DEVNULL, text=True)
    try:
        wait_for(lambda: answers(6411), head)
        given = [*TRAIN, "--steps", "4096", "--seeds", "2", "--on", "ray:127.0.0.1:6411"]
        given += ["--out", "run"]
        shown = subprocess.run(command(*given), cwd=tmp_path, env=home, stderr=subprocess.PIPE)
        assert shown.returncode == 2 and b"Traceback" not in shown.stderr
        assert b"set RAY_AUTH_MODE=token" in shown.stderr.splitlines()[-1]
        assert not (tmp_path / "run").exists()
        assert not subprocess.run(command(*given), cwd=tmp_path, env=home | token).returncode
    finally:
        kill_tree(head.pid)
    assert (tmp_path / "run" / "summary.json").exists()


def answers(port: int) -> bool:
    """Whether something listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True

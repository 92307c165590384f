"""Runs on a Ray cluster: files that travel, nodes that die."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coplay.core.errors import UserError
from coplay.sweeps import ray_workers
from coplay.sweeps.ray_workers import RayWorkers, pack, unpack


def test_a_run_travels_whole(tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "step-1.npz").write_bytes(b"arrays")
    (tmp_path / "run" / ".lock").write_text("held")
    packed = pack(tmp_path / "run")
    assert packed is not None and pack(tmp_path / "nothing") is None
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "old").touch()
    unpack(packed, tmp_path / "there")
    found = [path.relative_to(tmp_path / "there") for path in (tmp_path / "there").rglob("*.*")]
    assert found == [Path("checkpoints/step-1.npz")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "there"]


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"\.\[ray\]"):
        ray_workers.import_ray()


CLUSTER = """
import sys, threading, time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from coplay.cli.main import run

files, out, kill = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "kill"
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")


def kill_one():
    while not list(out.glob("trials/*/checkpoints/step-*[1-9]*.npz")):
        time.sleep(0.2)
    cluster.remove_node(nodes[1], allow_graceful=False)
    print("killed a node", flush=True)


if kill:
    threading.Thread(target=kill_one, daemon=True).start()
code = run(["sweep", *sys.argv[4:], "--on", "ray", "--files", files, "--out", str(out)])
ray.shutdown()
cluster.shutdown()
sys.exit(code)
"""
TINY = [
    *("ppo", "--game", "matrix:stag-hunt", "--vary", "discount=0.8,0.85,0.9,0.95", "--seeds", "2"),
    *("--steps", "65536", "--copies", "16", "--rollout", "16", "--block", "8", "--episodes", "50"),
    *("--checkpoint-every", "4096", "--network.hidden", "4", "--no-audit", "--no-measure"),
]


@pytest.mark.slow
@pytest.mark.parametrize("files", ["shared", "returned"])
def test_a_node_dies_and_nothing_is_lost(tmp_path: Path, files: str) -> None:
    """Four trials of two seeds on two nodes, one of which is killed; bit-equal to a local sweep."""
    pytest.importorskip("ray")
    from tests.faults.tiny import outcome

    home = str(Path(__file__).parents[2])
    variables = os.environ | {"PYTHONPATH": home, "RAY_USAGE_STATS_ENABLED": "0"}

    def start(*words: str) -> str:
        given: Any = {"env": variables, "cwd": tmp_path, "text": True, "check": True}
        return subprocess.run([sys.executable, *words], capture_output=True, **given).stdout

    said = start("-c", CLUSTER, files, str(tmp_path / "ray"), "kill", *TINY)
    assert "killed a node" in said
    local = ["--on", "local:1", "--cpus", "1", "--out", str(tmp_path / "local")]
    start("-m", "coplay", "sweep", *TINY, *local)
    for part in ("trials/000", "trials/001", "trials/002", "trials/003", "best"):
        assert outcome(tmp_path / "ray" / part) == outcome(tmp_path / "local" / part), part


@pytest.mark.slow
def test_an_address_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match="no cluster answers"):
        RayWorkers("127.0.0.1:1", 1, 0.0, "auto", tmp_path)

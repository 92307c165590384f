"""Runs on a Ray cluster: files that travel, nodes that die."""

import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coplay.core.errors import UserError
from coplay.sweeps import ray_workers
from coplay.sweeps.ray_workers import Files, RayWorkers, pack, unpack
from coplay.sweeps.workers import Job


def test_a_run_travels_whole(tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "step-1.npz").write_bytes(b"arrays")
    (tmp_path / "run" / ".lock").write_text("held")
    packed = pack(tmp_path / "run")
    assert packed is not None and pack(tmp_path / "nothing") is None
    (tmp_path / "run" / "checkpoints" / "step-0.npz").touch()
    assert packed == pack(tmp_path / "run", whole=False) != pack(tmp_path / "run")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "old").touch()
    unpack(packed, tmp_path / "there")
    found = [path.relative_to(tmp_path / "there") for path in (tmp_path / "there").rglob("*.*")]
    assert found == [Path("checkpoints/step-1.npz")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "there"]


def test_a_run_that_cannot_be_unpacked_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("all of it")
    packed = pack(tmp_path / "run")
    assert packed is not None
    with pytest.raises(tarfile.ReadError):
        unpack(packed[:600], tmp_path / "run")
    assert (tmp_path / "run" / "config.json").read_text() == "all of it"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"\.\[ray\]"):
        ray_workers.import_ray()


RUN = """
import os, sys, time
from pathlib import Path
if "--resume" in sys.argv:
    run = Path(sys.argv[sys.argv.index("--resume") + 1])
    (run / "summary.json").write_text("on from " + (run / "config.json").read_text())
    os._exit(0)
run = Path(sys.argv[sys.argv.index("--out") + 1])
(run / "checkpoints").mkdir(parents=True)
(run / "config.json").write_text("here")
(run / "checkpoints" / "step-1.npz").write_text("a checkpoint")
time.sleep(600)
"""
"""A file for `--load` in place of a run: it saves once and does not end; taken up, it ends."""


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without cores and two nodes with one core each."""
    ray = pytest.importorskip("ray", reason="a small Ray cluster needs .[ray]")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    made.add_node(num_cpus=1)
    made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()


def wait_for(found: Callable[[], Any]) -> Any:
    for _ in range(1200):
        if value := found():
            return value
        time.sleep(0.2)
    raise TimeoutError


def job_in(folder: Path) -> Job:
    """A run that saves once and waits; taken up, it ends."""
    (folder / "setting.json").write_text("{}")
    own = ("--load", str(folder.parent / "run.py"), "list")
    run, setting = folder / "run", folder / "setting.json"
    begin = (*own, "--config", str(setting), "--out", str(run))
    return Job("a", run, begin, (*own, "--resume", str(run)), folder / "log.txt", setting)


def test_a_run_goes_on_where_its_node_died(cluster: Any, tmp_path: Path) -> None:
    """On a small cluster, whose nodes see the folder, and as if they did not."""
    (tmp_path / "run.py").write_text(RUN)
    ways: tuple[Files, ...] = ("shared", "returned")
    for files in ways:
        (tmp_path / files).mkdir()
        lose_a_node(cluster, job_in(tmp_path / files), files)


def lose_a_node(cluster: Any, job: Job, files: Files) -> None:
    import ray

    folder = job.folder
    wait_for(lambda: sum(one["Alive"] for one in ray.nodes()) == 3)
    workers = RayWorkers("", 1, 0.0, files, folder.parent)
    assert workers.slots == 2 and workers.returned == (files == "returned")
    assert workers.start(job)
    wait_for(lambda: not workers.poll() and (folder / "checkpoints" / "step-1.npz").exists())
    place = ray.get(workers.jobs["a"][1].node.remote())
    (node,) = [one for one in cluster.worker_nodes if one.node_id == place]
    cluster.remove_node(node, allow_graceful=False)
    (ended,) = wait_for(workers.poll)
    assert ended.lost
    cluster.add_node(num_cpus=1)
    assert workers.start(job)
    (ended,) = wait_for(workers.poll)
    assert ended.code == 0, ended.words
    assert (folder / "summary.json").read_text() == "on from here"
    workers.close()


def test_an_answer_that_was_lost_with_its_node(cluster: Any, tmp_path: Path) -> None:
    """The run had told that it saved, but its files were still on the node that died."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    (tmp_path / "run.py").write_text(RUN)
    wait_for(lambda: sum(one["Alive"] for one in ray.nodes()) == 3)
    workers = RayWorkers("", 1, 0.0, "returned", tmp_path)
    assert workers.start(job_in(tmp_path))
    node = min(cluster.worker_nodes, key=lambda one: one.node_id)
    there = NodeAffinitySchedulingStrategy(node.node_id, soft=False)
    given = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": there}
    answer = ray.remote(lambda: bytes(10**7)).options(**given).remote()
    assert ray.wait([answer], fetch_local=False, timeout=60)[0]
    cluster.remove_node(node, allow_graceful=False)
    job, actor, _ = workers.jobs["a"]
    workers.jobs["a"] = (job, actor, answer)
    (ended,) = wait_for(workers.poll)
    assert ended.lost and not workers.jobs
    workers.close()


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "ray://127.0.0.1:1", "there", "nowhere.invalid:6379"]
)
def test_an_address_that_does_not_answer_is_one_sentence(tmp_path: Path, address: str) -> None:
    pytest.importorskip("ray", reason="a wrong address needs .[ray]")
    began = time.monotonic()
    with pytest.raises(UserError, match=f"no cluster answers at {address}: ") as found:
        RayWorkers(address, 1, 0.0, "auto", tmp_path)
    assert "\n" not in str(found.value) and time.monotonic() - began < 20

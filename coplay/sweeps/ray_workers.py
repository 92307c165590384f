"""Runs on a Ray cluster: an actor for each, with a process of its own.

An actor only looks after a process `coplay train …`; JAX is never loaded in it. Files of a run lie
on a disk that all nodes share, or an actor packs the run's folder after every checkpoint and hands
it over through Ray's object store. A run whose node dies is taken up on another one from its last
checkpoint.
"""

import io
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from coplay.core.errors import RunStopped, UserError, how_to_install
from coplay.core.files import make_folder
from coplay.core.lock import is_held
from coplay.sweeps.workers import (
    PATIENCE,
    Ended,
    Job,
    end_of,
    environment,
    launch,
    next_arguments,
    tail,
)

Files = Literal["auto", "shared", "returned"]
CARRIED = ("XLA_FLAGS", "JAX_PLATFORMS", "COPLAY_CACHE")
"""Variables of the driver's environment that runs on other nodes have, too."""
HERE = "127.0.0.1"
"""Where Ray listens if it is started for this command alone."""
LOG = 2**20
"""Bytes of a log that are returned at most."""
LOOK = 2.0
"""Seconds between two looks at a run whose files are returned."""
ANSWER = 30.0
"""Seconds that a cluster has to answer."""
LOOKING = 120.0
"""Seconds that nodes have to say whether they see a folder: each first starts a process."""
ONE_TRY = "RAY_gcs_server_port_wait_time_s"
"""How often Ray looks for a cluster, else twenty times. A look without an answer takes 40 s."""
ASK = 5.0
"""Seconds between two looks whether the head is there."""
SILENT = 3
"""Looks without an answer after which the head is lost. Ray itself would end this process without a
sentence, a minute after it lost the head."""


def import_ray() -> Any:
    """Ray, or an error that says how to get it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise UserError(f"--on ray needs Ray: {how_to_install('ray')}") from error
    return ray


class Look(NamedTuple):
    """What an actor says of its run. code: its exit code; None: it runs. words: the end of its log,
    if it failed. packed: the run, if its files are returned and it has a new checkpoint. log: what
    it printed, if its files are returned and it has ended."""

    code: int | None = None
    words: str = ""
    packed: bytes | None = None
    log: bytes = b""


class TrialActor:
    """Looks after the process of one run, on some node of a cluster."""

    def __init__(self, token: str, threads: int):
        self.token, self.threads = token, threads
        self.process: subprocess.Popen[bytes] | None = None
        self.job: Job | None = None
        self.home: Path | None = None
        self.sent = self.failed = ""
        self.begun = threading.Event()

    def node(self) -> str:
        """The node that this actor is on."""
        return str(import_ray().get_runtime_context().get_node_id())

    def sees(self, folder: str) -> bool:
        """Whether this node sees a folder of the driver."""
        return (Path(folder) / self.token).exists()

    def begin(
        self,
        job: Job,
        where: str,
        packed: bytes | None,
        order: str | None,
        carried: dict[str, str],
    ) -> None:
        """Begin a run or take it up. where: the current folder of the driver. order: what the job
        reads, where it runs in a folder of this node; None: in that of the driver, which this node
        sees. packed: what there is of the run, then. carried: variables of the driver."""
        cwd = Path(where)
        try:
            if order is not None:
                self.home = cwd = Path(tempfile.mkdtemp(prefix="coplay-ray-"))
                job = moved(job, self.home)
                job.order.write_text(order)
                if packed is not None:
                    unpack(packed, job.folder)
            self.job = job
            end = time.monotonic() + PATIENCE
            # The process of an actor that died may still be saving.
            while is_held(job.folder) and time.monotonic() < end:
                time.sleep(0.1)
            variables = environment(self.threads, carried)
            self.process = launch(next_arguments(job), job.log, cwd, variables)
        except OSError as error:
            self.failed = f"cannot begin on this node: {error}"
        finally:
            self.begun.set()

    def look(self, wait: float) -> Look:
        """How the run is, after so many seconds at most."""
        if not self.begun.wait(wait):
            return Look()
        if self.process is None or self.job is None:
            return Look(1, self.failed)
        code: int | None
        try:
            code = self.process.wait(wait)
        except subprocess.TimeoutExpired:
            code = None
        words = tail(self.job.log) if code else ""
        if self.home is None:
            return Look(code, words)
        stamp = _stamp(self.job.folder)
        if code is None and stamp == self.sent:
            return Look()
        self.sent = stamp
        packed = pack(self.job.folder, whole=code is not None)
        return Look(code, words, packed, b"" if code is None else end_of(self.job.log, LOG))

    def stop(self) -> None:
        """The run is to save and end."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def clear(self) -> None:
        """Remove what is on this node alone."""
        if self.home is not None:
            shutil.rmtree(self.home, ignore_errors=True)


def moved(job: Job, home: Path) -> Job:
    """A job whose files lie in a folder of the node."""
    places = {str(job.folder): home / "run", str(job.order): home / "order.json"}
    begin, go_on = (
        tuple(str(places.get(text, text)) for text in given) for given in (job.begin, job.go_on)
    )
    return Job(job.name, home / "run", begin, go_on, home / "log.txt", home / "order.json")


def _stamp(folder: Path) -> str:
    """What changes whenever a run has saved something."""
    found = sorted((folder / "checkpoints").glob("step-*.npz"))
    return found[-1].name if found else ""


def pack(folder: Path, whole: bool = True) -> bytes | None:
    """A run's folder as one piece; None: there is nothing. Files that are not finished stay out.
    whole: with all checkpoints, else with the newest and the best alone."""
    if not folder.is_dir():
        return None
    out = io.BytesIO()
    old = [] if whole else sorted((folder / "checkpoints").glob("step-*.npz"))[:-1]
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.startswith(".") and path not in old:
                try:
                    archive.add(path, path.relative_to(folder).as_posix(), recursive=False)
                except FileNotFoundError:  # an old checkpoint that was just removed
                    continue
    return out.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    """Put a run's folder in place of what is there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir()
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(fresh, filter="data")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


class RayWorkers:
    """Actors on a Ray cluster. address: of the cluster; empty: the one that is there, or a new one
    on this machine. cpus, gpus: of each run. out: the folder that runs are to be in."""

    def __init__(self, address: str, cpus: int, gpus: float, files: Files, out: Path):
        self.ray = import_ray()
        self.cpus, self.gpus, self.out = cpus, gpus, out
        self.started = self._connect(address)
        self.token = f".shared-{uuid.uuid4().hex}"
        self.kind = self.ray.remote(TrialActor)
        self.wants = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_concurrency": 4}
        self.jobs: dict[str, tuple[Job, Any, Any]] = {}
        self.packed: dict[str, bytes] = {}
        self.asked: set[str] = set()
        self._closed = self.lost = False
        self.head = "" if address.startswith("ray://") else self._head()
        self.silent, self.asked_at = 0, time.monotonic()
        try:
            if not (slots := self._capacity()):
                raise UserError(
                    f"no node of the Ray cluster has {cpus} cores and {gpus:g} GPUs for a trial: "
                    "give other --cpus and --gpus"
                )
            self.slots = slots
            self.returned = files == "returned" or not self._all_see(files)
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str) -> bool:
        """Join a cluster; whether this process already had. The error of a wrong address is one
        sentence."""
        if self.ray.is_initialized():
            return False
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
        wanted = address or os.environ.get("RAY_ADDRESS", "")
        listens = False
        try:
            listens = check_answer(wanted)
            try:
                with one_try():
                    self.ray.init(address=wanted or "auto", **quiet)
            except ConnectionError:
                if wanted:
                    raise
                self.ray.init(include_dashboard=False, _node_ip_address=HERE, **quiet)
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            first = (str(error).splitlines() or [""])[0]
            if listens:
                first += (
                    "; it runs another version of Ray, or asks for a token: copy the "
                    "~/.ray/auth_token of its head to this machine and set RAY_AUTH_MODE=token"
                )
            raise UserError(
                f"--on ray: no cluster answers at {wanted or 'auto'}: {first}"
            ) from error
        return True

    def _head(self) -> str:
        """HOST:PORT of the head of the cluster."""
        return str(self.ray.get_runtime_context().gcs_address)

    def _check_head(self) -> None:
        """An error if the head of the cluster is gone."""
        if not self.head or time.monotonic() < self.asked_at + ASK:
            return
        self.asked_at = time.monotonic()
        host, _, port = self.head.rpartition(":")
        try:
            socket.create_connection((host, int(port)), ASK).close()
            self.silent = 0
            self.slots = self._capacity() or self.slots  # nodes come and go
        except OSError as error:
            self.silent += 1
            if self.silent >= SILENT:
                self.lost = True
                raise RunStopped(
                    f"the Ray cluster is lost: its head does not answer at {self.head} ({error})"
                ) from error

    def _nodes(self) -> list[dict[str, Any]]:
        return [one for one in self.ray.nodes() if one["Alive"]]

    def _capacity(self) -> int:
        """Runs that fit at a time on all nodes."""
        fits = 0
        for node in self._nodes():
            own = node["Resources"]
            by_cpu = int(own.get("CPU", 0) // self.cpus)
            fits += min(by_cpu, int(own.get("GPU", 0) / self.gpus)) if self.gpus else by_cpu
        return fits

    def _all_see(self, files: Files) -> bool:
        """Whether all nodes that could run a trial see the folder; with files "shared" an error if
        one does not."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.out.mkdir(parents=True, exist_ok=True)
        mark = self.out / self.token
        mark.touch()
        asked = []
        try:
            for node in self._nodes():
                if node["Resources"].get("CPU", 0) >= self.cpus:
                    here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                    actor = self.kind.options(
                        num_cpus=0, max_restarts=0, scheduling_strategy=here
                    ).remote(self.token, 1)
                    sees = actor.sees.remote(str(self.out.resolve()))
                    asked.append((str(node["NodeManagerHostname"]), actor, sees))
            self.ray.wait([sees for *_, sees in asked], num_returns=len(asked), timeout=LOOKING)
            blind = [name for name, _, sees in asked if not self._answer(sees)]
        finally:
            mark.unlink(missing_ok=True)
            for _, actor, _ in asked:
                self.ray.kill(actor)
        if blind and files == "shared":
            raise UserError(
                f"--files shared: {blind[0]} does not see {self.out.resolve()}; put --out on a "
                "disk that all nodes share, or give --files returned"
            )
        return not blind

    def _answer(self, asked: Any) -> bool:
        """What a node said; False if it is gone or says nothing."""
        try:
            return bool(self.ray.get(asked, timeout=0.1))
        except self.ray.exceptions.RayError:
            return False

    # --- jobs ----------------------------------------------------------------------------------

    def start(self, job: Job) -> bool:
        actor = self.kind.options(**self.wants).remote(self.token, self.cpus)
        order = job.order.read_text() if self.returned else None
        packed = self.packed.get(job.name)
        if self.returned and packed is None:
            packed = pack(job.folder)
        given = job if self.returned else _absolute(job)
        carried = {name: os.environ[name] for name in CARRIED if name in os.environ}
        actor.begin.remote(given, str(Path.cwd()), packed, order, carried)
        self.jobs[job.name] = (job, actor, actor.look.remote(LOOK))
        return True

    def poll(self) -> list[Ended]:
        self._check_head()
        ended = []
        for name, (job, actor, answer) in list(self.jobs.items()):
            ready, _ = self.ray.wait([answer], timeout=0)
            if not ready:
                continue
            try:
                code, words, packed, log = self.ray.get(answer)
            # A node may also die between an answer and its way here.
            except (self.ray.exceptions.RayActorError, self.ray.exceptions.ObjectLostError):
                del self.jobs[name]
                self.ray.kill(actor)  # it may only be out of reach
                ended.append(Ended(name, -1, lost=True, words="its node or its actor is gone"))
                continue
            except self.ray.exceptions.RayTaskError as error:
                del self.jobs[name]
                self.ray.kill(actor)
                ended.append(Ended(name, 1, words=str(error.cause)))
                continue
            except self.ray.exceptions.RayError as error:
                raise RunStopped(
                    f"the Ray cluster is lost: {str(error).splitlines()[0]}"
                ) from error
            if packed is not None:
                self.packed[name] = packed
                unpack(packed, job.folder)
            if log:
                make_folder(job.log.parent)
                with open(job.log, "ab") as out:
                    out.write(log)
            if code is None:
                self.jobs[name] = (job, actor, actor.look.remote(LOOK))
                continue
            self._end(name, actor)
            ended.append(Ended(name, code, words=words))
        return ended

    def _end(self, name: str, actor: Any) -> None:
        del self.jobs[name]
        self.packed.pop(name, None)
        if self.returned:
            self.ray.wait([actor.clear.remote()], timeout=5.0)
        self.ray.kill(actor)

    def ask_to_stop(self, name: str) -> None:
        if name in self.jobs and name not in self.asked:
            self.asked.add(name)
            self.jobs[name][1].stop.remote()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self.lost:  # whatever asks Ray now would wait for its end
            return
        for name in self.jobs:
            self.ask_to_stop(name)
        end = time.monotonic() + PATIENCE
        while self.jobs and time.monotonic() < end:
            try:
                self.poll()
            except RunStopped:
                break
            time.sleep(0.2)
        for _, actor, _ in self.jobs.values():
            self.ray.kill(actor)
        self.jobs.clear()
        if self.started:
            self.ray.shutdown()


def check_answer(address: str) -> bool:
    """Whether an address names a machine; an error if nothing listens there: Ray itself would look
    for many minutes."""
    place = address.removeprefix("ray://")
    if place in ("", "auto", "local"):
        return False
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError("an address is HOST:PORT, such as 10.0.0.1:6379")
    socket.create_connection((host.strip("[]"), int(port)), ANSWER).close()
    return True


@contextmanager
def one_try() -> Iterator[None]:
    """Ray looks for a cluster once, unless the environment says how often."""
    told = ONE_TRY in os.environ
    os.environ.setdefault(ONE_TRY, "1")
    try:
        yield
    finally:
        if not told:
            del os.environ[ONE_TRY]


def _absolute(job: Job) -> Job:
    """A job whose log is found from any folder."""
    return job._replace(log=job.log.resolve(), folder=job.folder.resolve())

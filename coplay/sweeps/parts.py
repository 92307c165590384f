"""The parts of one piece of work done by several workers: on this machine, or on a Ray cluster.

What is done lies in a folder beside the result until all parts are there. The same call goes on
where it was.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from coplay.core.errors import Interrupted, RunStopped, UserError, why_stopped
from coplay.core.lock import LOCK, Lock
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.jobs import workers_for
from coplay.sweeps.workers import LOSSES, TRIES, Job, Workers, awaited, tail


def do_parts(
    where: SweepConfig,
    home: Path,
    jobs: Callable[[], list[Job]],
    is_done: Callable[[Job], bool],
    finish: Callable[[list[Job]], None],
    say: Callable[[str], None],
    what: str,
    needs_disk: bool = False,
) -> None:
    """Do all jobs, whose folders are in `home`, then `finish` with them, then remove `home`.

    jobs: makes them, once `home` is there. is_done: by an earlier call. what: they are, for what is
    said. needs_disk: they read folders of this machine.
    """
    fresh, begun = not home.exists(), False
    lock = Lock(home)
    workers: Workers | None = None
    try:
        made = jobs()
        workers = workers_for(where, home, len(made))
        if needs_disk and getattr(workers, "returned", False):
            raise UserError(
                f"{what} read folders of this machine: give an --out that all nodes share, and "
                "no --files returned"
            )
        say(f"{len(made)} {what}, {min(workers.slots, len(made))} at a time")
        begun = True
        run_jobs(workers, [job for job in made if not is_done(job)], say)
        finish(made)
    except KeyboardInterrupt:
        say("stopping: the runs save what they have")
        raise Interrupted("stopped; the same command goes on where it was") from None
    except Exception as error:
        if (why := why_stopped(error)) is None:
            raise
        raise RunStopped(f"{why}\nThe same command goes on where it was") from error
    finally:
        if workers is not None:
            workers.close()
        if fresh and not begun:
            empty(home)
        lock.release(discard=True)
    shutil.rmtree(home)


def empty(folder: Path) -> None:
    """Remove what jobs that were never begun left in a folder, but its lock."""
    for one in folder.iterdir():
        if one.name != LOCK:
            shutil.rmtree(one) if one.is_dir() else one.unlink()


def run_jobs(workers: Workers, jobs: list[Job], say: Callable[[str], None]) -> None:
    """Do all jobs; an error if one fails three times by itself."""
    waiting, running = list(jobs), dict[str, Job]()
    failed, lost = dict[str, int](), dict[str, int]()
    done = 0
    while waiting or running:
        while waiting and len(running) < workers.slots:
            job = waiting.pop(0)
            if not workers.start(job):
                waiting.append(job)
                break
            running[job.name] = job
        for one in awaited(workers):
            job = running.pop(one.name)
            if one.code == 0:
                done += 1
                say(f"{job.name}: done, {done} of {len(jobs)}")
                continue
            counted = lost if one.lost else failed
            counted[job.name] = counted.get(job.name, 0) + 1
            if one.code == 2 or counted[job.name] >= (LOSSES if one.lost else TRIES):
                raise RunStopped(f"{job.name} failed: {one.words or tail(job.log)}")
            say(f"{job.name}: {'its machine is lost' if one.lost else 'it failed'}; once more")
            waiting.insert(0, job)

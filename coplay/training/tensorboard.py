"""Event files for TensorBoard, written where the numbers arise.

`tensorboardX.SummaryWriter` writes from a thread behind a queue: on a full disk the thread dies and
the queue blocks the run. Its records and messages are used here without the thread.
"""

import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.record_writer import masked_crc32c

from coplay.core import files
from coplay.training.metrics import describe


class EventFile:
    """The events of one seed in one process; the file is made with the first of them.

    TensorBoard reads all files of a folder in the order of their names. A file of a resumed run
    begins by saying that everything after the step it goes on from is void.
    """

    def __init__(self, folder: Path, after: int):
        """after: the step that the run starts or goes on from."""
        seconds, rest = divmod(time.time_ns(), 10**9)
        self.path = folder / f"events.out.tfevents.{seconds}.{rest:09d}.{os.getpid()}"
        self.waiting = [_record(Event(wall_time=time.time(), file_version="brain.Event:2"))]
        start = SessionLog(status=SessionLog.START)
        self.waiting.append(
            _record(Event(wall_time=time.time(), step=after + 1, session_log=start))
        )
        self.described: set[str] = set()

    def add(self, step: int, metrics: Mapping[str, Any]) -> None:
        """One event with all metrics of a step."""
        values = []
        for name, number in metrics.items():
            value = Summary.Value(tag=name, simple_value=number)
            if name not in self.described:  # TensorBoard reads it where a metric first appears
                self.described.add(name)
                value.metadata.summary_description = describe(name) or ""
            values.append(value)
        event = Event(wall_time=time.time(), step=step, summary=Summary(value=values))
        self.waiting.append(_record(event))

    def write(self) -> None:
        """Append what was added."""
        if not self.path.exists():
            files.make_folder(self.path.parent)
        files.DISK.append(self.path, b"".join(self.waiting))
        self.waiting = []


def _record(event: Event) -> bytes:
    """An event as TensorBoard reads it: length, its checksum, the event, its checksum."""
    data = event.SerializeToString()
    header = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", masked_crc32c(part)) for part in (header, data)]
    return header + sums[0] + data + sums[1]

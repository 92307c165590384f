"""What moves between the devices of one run, by the compiled program.

`python benchmarks/device_traffic.py --devices 64 ppo --game stag-hunt` compiles `coplay train …
--devices 64` for as many devices made of this machine, and adds up what its collective operations
send in one update: an all-reduce 2 (n-1)/n of its size from each device, as in a ring. Then it runs
the same on one device for the seconds of an update there.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SENT = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "all-gather": lambda n: (n - 1) / n,
    "reduce-scatter": lambda n: n - 1,
    "all-to-all": lambda n: (n - 1) / n,
    "collective-permute": lambda n: 1,
}
"""Operation -> what each of n devices sends, in sizes of the result."""

HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
MOVES = re.compile(rf"= (.+?) ({'|'.join(SENT)})\(")
CALLED = re.compile(r"(?:body|calls|to_apply|true_computation|false_computation)=%?([\w.\-]+)")
BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
TURNS = re.compile(r'known_trip_count":\{"n":"(\d+)"')
ARRAY = re.compile(r"(pred|bf16|[suf]\d+)\[([\d,]*)\]")


def size(shape: str) -> int:
    """Bytes of an array, or of a tuple of arrays, as the compiler writes it."""
    found = 0
    for kind, sides in ARRAY.findall(shape):
        bits = 8 if kind == "pred" else int(re.sub(r"\D", "", kind))
        count = 1
        for side in filter(None, sides.split(",")):
            count *= int(side)
        found += count * bits // 8
    return found


def collectives(program: str) -> Counter[str]:
    """Operation -> bytes of its results in one turn of the outermost loop. A loop whose turns are
    known counts so often; of a branch, every way counts."""
    moved: dict[str, Counter[str]] = {}
    inside: dict[str, list[tuple[str, int]]] = {}
    name = entry = ""
    for line in program.splitlines():
        if head := HEAD.match(line):
            name = head[2]
            entry = name if head[1] else entry
            moved[name], inside[name] = Counter(), []
        elif name:
            if found := MOVES.search(line):
                moved[name][found[2]] += size(found[1])
            turns = TURNS.search(line)
            called = CALLED.findall(line)
            if ways := BRANCHES.search(line):
                called += [one.strip().lstrip("%") for one in ways[1].split(",")]
            inside[name] += [(one, int(turns[1]) if turns else 1) for one in called]
    known: dict[str, Counter[str]] = {}

    def total(of: str) -> Counter[str]:
        if of not in known:
            known[of] = Counter(moved[of])
            for one, turns in inside[of]:
                for kind, count in total(one).items():
                    known[of][kind] += turns * count
        return known[of]

    return total(entry)


def train(folder: Path, given: list[str], flags: str) -> dict:
    """The summary of a short run."""
    out = ["--out", str(folder / "run"), "--no-pictures", "--episodes", "2", "--json"]
    command = [sys.executable, "-m", "coplay", "train", *given, *out]
    variables = os.environ | {"XLA_FLAGS": flags, "COPLAY_CACHE": "off"}
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=64)
    given, run = parser.parse_known_args()
    count = given.devices
    with tempfile.TemporaryDirectory() as home:
        dump = Path(home) / "dump"
        flags = f"--xla_force_host_platform_device_count={count} --xla_dump_to={dump} "
        flags += "--xla_dump_hlo_as_text --xla_dump_hlo_module_re=.*placed_block.*"
        found = train(Path(home), [*run, "--steps", "1", "--devices", str(count)], flags)
        (program,) = dump.glob("*placed_block*after_optimizations.txt")
        moved = collectives(program.read_text())
    update = found["steps"]
    sent = {kind: SENT[kind](count) * size for kind, size in moved.items()}
    print(f"{found['parameters']:,} parameters, {update:,} steps in an update")
    for kind, bytes_ in sorted(sent.items()):
        print(f"{kind}: each device sends {bytes_ / 1e6:.2f} MB in an update")
    with tempfile.TemporaryDirectory() as home:
        alone = train(Path(home), [*run, "--steps", str(5 * update)], "")
    seconds = update / alone["steps_per_second"]
    rate = sum(sent.values()) / (seconds / count)
    print(
        f"an update on one device: {seconds:.2f} s, shared by {count}: {1e3 * seconds / count:.0f} "
        f"ms at best; then each device sends {rate / 1e6:,.0f} MB/s"
    )


if __name__ == "__main__":
    main()

"""Wheel and source archive of a release: built, checked and listed. `make dist` runs it.

    python -m tools.release

What is built is in `dist/`. A build happens in a copy, since it leaves files beside the sources.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from coplay.core.version import VERSION

HOME = Path(__file__).parents[1]
SOURCES = (
    *("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"),
    *("CHANGELOG.md", "CITATION.cff"),
)
"""What a build takes beside the package."""
MADE = ("PKG-INFO", "setup.cfg", "coplay.egg-info")
"""What a source archive holds besides, made by the build."""


def package_files(home: Path = HOME) -> set[str]:
    """All files of the package, below the folder of the project."""
    found = (path for path in (home / "coplay").rglob("*") if path.is_file())
    return {path.relative_to(home).as_posix() for path in found if "__pycache__" not in path.parts}


def copy_sources(target: Path, home: Path = HOME) -> Path:
    """What a build needs, in a folder of its own."""
    shutil.copytree(
        home / "coplay", target / "coplay", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in SOURCES:
        shutil.copy(home / name, target)
    return target


def wheel_faults(names: Iterable[str], files: set[str]) -> list[str]:
    """What is missing in a wheel with these entries, or should not be there."""
    about = f"coplay-{VERSION}.dist-info"
    found = set(names)
    more = [name for name in found - files if PurePosixPath(name).parts[0] != about]
    faults = [f"missing: {name}" for name in sorted(files - found)]
    faults += [f"left over: {name}" for name in sorted(more)]
    if not any(name.startswith(about) and name.endswith("LICENSE") for name in found):
        faults.append("missing: LICENSE")
    return faults


def archive_faults(names: Iterable[str], files: set[str]) -> list[str]:
    """The same of a source archive."""
    top = f"coplay-{VERSION}/"
    found = {name.removeprefix(top) for name in names}
    wanted = files | set(SOURCES)
    more = [name for name in found - wanted if PurePosixPath(name).parts[0] not in MADE]
    return [f"missing: {name}" for name in sorted(wanted - found)] + [
        f"left over: {name}" for name in sorted(more)
    ]


def built_faults(folder: Path, files: set[str]) -> list[str]:
    """What is wrong with the wheel and the source archive in a folder."""
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        faults = [f"{wheel.name}: {fault}" for fault in wheel_faults(opened.namelist(), files)]
    with tarfile.open(archive) as opened_archive:
        names = [member.name for member in opened_archive if member.isfile()]
    return faults + [f"{archive.name}: {fault}" for fault in archive_faults(names, files)]


def main() -> int:
    """Build, check, list; the exit code."""
    out = HOME / "dist"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        source = copy_sources(Path(temporary))
        build = [sys.executable, "-m", "build", "--outdir", str(out), str(source)]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    files = package_files()
    built = sorted(out.iterdir())
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *built], check=True)
    for fault in (faults := built_faults(out, files)):
        print(fault, file=sys.stderr)
    for path in built:
        print(f"{path.relative_to(HOME)}: {path.stat().st_size:,} bytes")
    print(f"{len(files)} files of the package in each" if not faults else "do not publish this")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

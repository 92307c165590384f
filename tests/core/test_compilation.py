"""Settings of JAX with which nothing can be computed are refused in a sentence."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from coplay.core.compilation import check_backend
from coplay.core.errors import UserError


def test_64_bits_are_refused() -> None:
    check_backend()
    jax.config.update("jax_enable_x64", True)
    try:
        with pytest.raises(UserError, match="JAX_ENABLE_X64=0"):
            check_backend()
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"JAX_PLATFORMS": "nonsense"}, "JAX_PLATFORMS=nonsense"),
        ({"JAX_ENABLE_X64": "1"}, "JAX_ENABLE_X64=0"),
    ],
    ids=["platform", "bits"],
)
def test_before_a_folder_is_made(setting: dict[str, str], words: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "coplay", "train", "ppo", "--out", str(out)]
    done = subprocess.run(
        command, env=os.environ | setting, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1 and not out.exists()

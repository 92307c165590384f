"""What a program runs on."""

import os
import platform

from coplay.core.machine import machine


def test_no_name_of_the_machine_is_told() -> None:
    told = machine()
    assert told["cores"] == os.cpu_count() and told["cpu"]
    assert not platform.node() or platform.node() not in str(told)

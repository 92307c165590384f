"""Requests to stop: noted in the loop, at once where nothing has to be saved."""

import os
import signal

import pytest

from coplay.core.errors import Interrupted
from coplay.training.signals import StopRequest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_is_noted_and_the_second_stops(number: int) -> None:
    before = signal.signal(number, signal.default_int_handler)  # perhaps ignored, by nohup
    try:
        stop = StopRequest()
        with stop.listening():
            os.kill(os.getpid(), number)
            assert stop.asked
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_where_nothing_has_to_be_saved_it_stops_at_once() -> None:
    stop = StopRequest()
    with stop.listening():
        with (
            pytest.raises(Interrupted, match="evaluating"),
            stop.at_once("evaluating"),
        ):
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted, match="drawing"), stop.at_once("drawing"):
            raise AssertionError("asked before")


def test_a_request_while_garbage_is_collected_is_heard_at_the_end() -> None:
    def _xla_gc_callback() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.getpid()  # a signal is heard between two instructions

    stop = StopRequest()
    went_on = False
    with stop.listening(), pytest.raises(Interrupted, match="drawing"), stop.at_once("drawing"):
        _xla_gc_callback()
        went_on = True
    assert went_on


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = StopRequest()
        with stop.listening():
            os.kill(os.getpid(), signal.SIGHUP)
        assert not stop.asked
    finally:
        signal.signal(signal.SIGHUP, before)

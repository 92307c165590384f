"""The command line that is being run."""

from coplay.core.invocation import invocation, invoked


def test_a_command_is_known_while_it_runs() -> None:
    with invoked(["audit", "seats", "--out", "a b"]):
        assert invocation() == "coplay audit seats --out 'a b'"
    assert invocation() is None

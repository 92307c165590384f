"""Audits: a chain of checks with one verdict that names the stage at fault."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Check:
    """One question and its answer.

    stage: what is at fault if it does not pass, a name in `Audit.stages`.
    detail: the answer in words.
    exact: decided by computation, not by statistics. What an exact check finds at fault explains
        what a statistical one sees, so it names the stage.
    figures: numbers for pictures, as JSON.
    """

    name: str
    stage: str
    passed: bool
    detail: str
    exact: bool = True
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Audit:
    """The answers to all checks. stages: name -> its meaning, in the order of the data's way."""

    subject: str
    stages: Mapping[str, str]
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def first_fault(self) -> Check | None:
        """The failed check of the earliest stage; exact ones before statistical ones."""
        order = list(self.stages)
        failed = [check for check in self.checks if not check.passed]
        return min(failed, key=lambda c: (not c.exact, order.index(c.stage)), default=None)

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        fault = self.first_fault
        if fault is None:
            return f"{self.subject}: all {len(self.checks)} checks passed"
        meaning = self.stages[fault.stage]
        return f"{self.subject}: at fault is the stage '{fault.stage}' ({meaning}). {fault.detail}"

    def as_json(self) -> dict[str, Any]:
        fault = self.first_fault
        return {
            "verdict": "pass" if self.passed else "fail",
            "stage": None if fault is None else fault.stage,
            "words": self.words,
            "checks": [
                {
                    "name": check.name,
                    "stage": check.stage,
                    "passed": check.passed,
                    "detail": check.detail,
                    "figures": check.figures,
                }
                for check in self.checks
            ],
        }

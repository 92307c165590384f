"""What an adaptation came to: episodes cut out of steps, scores, curves, and when it was good."""

from typing import Any, NamedTuple

import numpy as np

from coplay.core.errors import UserError
from coplay.evaluation.adaptation.protocol import Played
from coplay.matches.statistics import bootstrap_interval, iqm

GOOD = 0.9
"""Share of the way from random play to the best response that counts as adapted."""
WINDOW = 10
"""Episodes over which a curve is averaged to say when it is good."""


class EpisodeScores(NamedTuple):
    """The whole episodes of one unit, [episode].

    reward: what the focal player got. begin, end: steps of the unit played before its first step,
    and after its last. belief: mean probability given to co-players' true goals; accuracy: share of
    co-players' actions that were held most probable; both NaN where there was nothing to count, and
    None for players that expect nothing.
    """

    reward: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    belief: np.ndarray | None
    accuracy: np.ndarray | None


class References(NamedTuple):
    """What a score is measured by: reward per episode of a random player (0) and of the best
    response (1); None where there is none. stderr: of their difference."""

    random: float | None
    best_response: float | None
    stderr: float = 0.0

    def normalised(self, score: Any) -> Any:
        """Scores as a share of the way from random to the best response; None without both, or if
        the best response that was found is no better than random play."""
        if self.random is None or self.best_response is None:
            return None
        way = self.best_response - self.random
        return None if way < 1e-9 else (score - self.random) / way


def cut_episodes(played: Played) -> list[EpisodeScores]:
    """The episodes of every unit, in order."""
    found = []
    for unit in range(played.over.shape[0]):
        end = np.flatnonzero(played.over[unit]) + 1
        begin = np.concatenate([[0], end[:-1]]).astype(int)

        def total(steps: Any, unit: int = unit, begin: Any = begin, end: Any = end) -> np.ndarray:
            sums = np.concatenate([[0.0], np.cumsum(np.asarray(steps[unit], float))])
            return sums[end] - sums[begin]

        found.append(
            EpisodeScores(
                reward=total(played.reward),
                begin=begin,
                end=end,
                belief=_share(played.belief, played.believed, total),
                accuracy=_share(played.predicted, played.acted, total),
            )
        )
    return found


def _share(part: Any, whole: Any, total: Any) -> np.ndarray | None:
    if part is None or whole is None:
        return None
    counts = total(whole)
    return np.where(counts > 0, total(part) / np.maximum(counts, 1), np.nan)


def unit_scores(units: list[EpisodeScores], steps: int, last: int) -> np.ndarray:
    """[unit] mean reward of the episodes that ended in the last steps."""
    scores = []
    for unit in units:
        late = unit.reward[unit.end > steps - last]
        if not late.size:
            raise UserError(
                f"no episode ended in the last {last} of {steps} steps of some repetition: give "
                "more steps, or count more of them by --last"
            )
        scores.append(late.mean())
    return np.array(scores)


def first_good(curve: np.ndarray, good: float, window: int = WINDOW) -> int | None:
    """The first episode from which the mean of the following `window` episodes stays at or above
    `good`, as the number of episodes before it; None: it never does.

    curve: [episode].
    """
    return _lasting(smoothed(curve, window), good)


def first_robust(rewards: np.ndarray, good: float, window: int = WINDOW) -> int | None:
    """The same, if a fall counts only where the 95 % interval of the mean over units is below: one
    unlucky stretch of a curve that is near the top does not.

    rewards: [unit, episode], on the scale of `good`.
    """
    windows = smoothed(rewards, window)
    ends = [bootstrap_interval(one, np.mean, resamples=500)[1] for one in windows.T]
    return _lasting(np.array(ends), good)


def smoothed(curve: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """[..., episode] means of the following `window` episodes, for the episodes that have them."""
    sums = np.cumsum(curve, axis=-1, dtype=float)
    sums = np.concatenate([np.zeros_like(sums[..., :1]), sums], axis=-1)
    return (sums[..., window:] - sums[..., :-window]) / window


def _lasting(values: np.ndarray, good: float) -> int | None:
    """The first place from which values are not below `good`; None: the last one is, or there are
    none."""
    # Rewards are float32 sums: a mean that equals the threshold must not fail by rounding.
    fails = np.flatnonzero(values < good - 1e-6)
    after = int(fails[-1]) + 1 if fails.size else 0
    return None if after >= len(values) else after


def first_reached(curve: np.ndarray, good: float, window: int = WINDOW) -> int | None:
    """The same, if it may fall below later."""
    reached = smoothed(curve, window) >= good - 1e-6
    return int(np.flatnonzero(reached)[0]) if reached.any() else None


def summarise(played: Played, steps: int, last: int, references: References) -> dict[str, Any]:
    """The result of one meeting as a JSON object.

    score: interquartile mean over units of their mean episode reward in the last steps; interval:
    its 95 % bootstrap interval; mean: the plain mean. curve: mean over units of each episode's
    reward, for the episodes that every unit has finished.
    """
    units = cut_episodes(played)
    scores = unit_scores(units, steps, last)
    common = min(len(unit.reward) for unit in units)
    rewards = np.stack([unit.reward[:common] for unit in units])
    curve = rewards.mean(0)
    score, interval = iqm(scores), bootstrap_interval(scores)
    share = references.normalised(curve)
    good = robust = reached = None
    if share is not None:
        good, reached = first_good(share, GOOD), first_reached(share, GOOD)
        robust = first_robust(references.normalised(rewards), GOOD)
    bands = [bootstrap_interval(column, resamples=500) for column in rewards.T]
    accuracy = _course(played.predicted, played.acted, units, common, "accuracy", played.over)
    if accuracy is not None and played.best is not None and played.acted is not None:
        accuracy["best"] = float(played.best.sum()) / max(float(played.acted.sum()), 1.0)
    return {
        "score": score,
        "normalised": references.normalised(score),
        "random": references.random,
        "best_response": references.best_response,
        "references_stderr": references.stderr,
        "episodes_to_90": good,
        "steps_to_90": _steps_before(units, good),
        "episodes_to_90_robust": robust,
        "steps_to_90_robust": _steps_before(units, robust),
        "interval": list(interval),
        "normalised_interval": _both(references, interval),
        "mean": float(scores.mean()),
        "scores": scores.tolist(),
        "cumulative": float(played.reward.sum(-1).mean()),
        **_regret(units, score, references.best_response),
        "episodes_to_first_90": reached,
        "steps_to_first_90": _steps_before(units, reached),
        "episodes": common,
        "curve": curve.tolist(),
        "curve_interval": [list(band) for band in bands],
        "belief": _course(played.belief, played.believed, units, common, "belief", played.over),
        "accuracy": accuracy,
    }


def _regret(
    units: list[EpisodeScores], score: float, best: float | None
) -> dict[str, float | None]:
    """What is lost to the best response: per episode at the end (regret), and in all episodes of a
    unit together, mean over units (cumulative_regret)."""
    if best is None:
        return {"regret": None, "cumulative_regret": None}
    lost = [float(np.sum(best - unit.reward)) for unit in units]
    return {"regret": best - score, "cumulative_regret": float(np.mean(lost))}


def _both(references: References, interval: tuple[float, float]) -> list[float] | None:
    low, high = (references.normalised(end) for end in interval)
    return None if low is None or high is None else [low, high]


def _steps_before(units: list[EpisodeScores], episode: int | None) -> float | None:
    """Mean over units of the steps played before an episode."""
    if episode is None:
        return None
    return float(np.mean([unit.begin[episode] for unit in units]))


def _course(
    part: Any, whole: Any, units: list[EpisodeScores], common: int, name: str, over: Any
) -> dict[str, Any] | None:
    """How a share develops: in all, by episode (mean over units), and by step of the episode (over
    the second half of all steps, when habits are known); null where there was nothing to count."""
    if part is None or whole is None:
        return None
    by_episode = np.stack([getattr(unit, name)[:common] for unit in units])
    half = part.shape[1] // 2
    time = episode_time(over)
    late = np.arange(part.shape[1]) >= half
    longest = int(time.max()) + 1
    sums = [np.bincount(time[:, late].ravel(), x[:, late].ravel(), longest) for x in (part, whole)]
    return {
        "mean": float(part.sum() / max(whole.sum(), 1)),
        "by_episode": [_number(_mean(column)) for column in by_episode.T],
        "by_step": [_number(a / b) if b > 0 else None for a, b in zip(*sums, strict=True)],
    }


def episode_time(over: np.ndarray) -> np.ndarray:
    """[unit, time] steps played in the episode before each step."""
    steps = np.arange(over.shape[1])
    begins = np.where(over, steps + 1, 0)
    begun = np.concatenate(
        [np.zeros((len(over), 1), int), np.maximum.accumulate(begins, axis=1)[:, :-1]], axis=1
    )
    return steps - begun


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

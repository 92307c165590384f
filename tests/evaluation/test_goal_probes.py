"""Probes, recognition and views in two dimensions, on codes whose answer is known."""

import numpy as np

from coplay.evaluation.goal_probes import by_step, fit_probe, principal, recognition, tsne

RNG = np.random.default_rng(0)


def clusters(count: int, apart: float) -> tuple[np.ndarray, np.ndarray]:
    label = RNG.integers(3, size=count)
    middle = apart * np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    return RNG.normal(size=(count, 4)) + middle[label], label


def test_a_probe_reads_what_is_there_and_nothing_else() -> None:
    code, label = clusters(1500, 8.0)
    right = fit_probe(code[:1000], label[:1000], 3)(code[1000:]).argmax(1) == label[1000:]
    assert right.mean() > 0.98
    blind = fit_probe(code[:1000, 3:], label[:1000], 3)(code[1000:, 3:])
    assert abs((blind.argmax(1) == label[1000:]).mean() - 1 / 3) < 0.1
    np.testing.assert_allclose(blind.sum(1), 1, rtol=1e-5)


def test_recognition_counts_actions_until_it_is_sure() -> None:
    segment = np.array([0, 0, 0, 2, 2, 5, 5, 5])
    time = np.array([0, 1, 2, 0, 1, 0, 1, 2])
    given = np.array([0.3, 0.95, 0.5, 0.2, 0.8, 0.1, 0.2, 0.9])
    found = recognition(given, segment, time)
    assert (found.segments, found.steps) == (3, 1.5) and found.share == 2 / 3
    counts, share = by_step(given > 0.6, time, 4)
    np.testing.assert_array_equal(counts, [3, 3, 2, 0])
    np.testing.assert_allclose(share, [0, 2 / 3, 1 / 2, 0])


def test_near_codes_stay_near() -> None:
    code, label = clusters(150, 30.0)
    flat, share = principal(code)
    assert share[:2].sum() > 0.95
    for view in (flat, tsne(code, steps=250)):
        far = np.linalg.norm(view[:, None] - view[None], axis=-1)
        np.fill_diagonal(far, np.inf)
        assert (label[far.argmin(1)] == label).mean() > 0.98

"""What an imagined step costs with ego views built for all seats, and with sparse views instead.

python benchmarks/imagined_steps.py --board 4 --batch 256
"""

import argparse
from typing import Any

from coplay.bench.measure import Work, measure
from coplay.bench.search import arbitrary_searches, steps_alone
from coplay.games.registry import make_game

STEPS = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", type=int, default=4)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=15)
    given = parser.parse_args()
    game = make_game("stag-hunt", height=given.board, width=given.board)
    setting = arbitrary_searches(game, given.batch, (64, 64))

    def views(game: Any, setting: Any) -> Any:
        return steps_alone(game, STEPS, *setting)

    def sparse(game: Any, setting: Any) -> Any:
        simulator, *rest = setting
        return steps_alone(game, STEPS, simulator.prepared(game), *rest)

    amount = given.batch * STEPS
    works = [
        Work(function.__name__, "steps", amount, function, (game, setting))
        for function in (views, sparse)
    ]
    for speed in measure(works, given.repeats):
        print(f"{speed.work.name}: {speed.per_second:,.0f} imagined steps per second")


if __name__ == "__main__":
    main()

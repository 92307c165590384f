"""Battles of SMAClite as the adapter plays them, for `smaclite_battles.json`.

Where SMAClite is installed: `python tests/games/adapters/record_smaclite.py` writes the file anew.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from coplay.games.adapters.workers.smac_env import SmacParallel, make

FILE = Path(__file__).parent / "smaclite_battles.json"
EASY = Path(__file__).parent / "3m_vs_1m.json"
POLICIES = {"3m": "first", "3m random": "random", "3m_vs_1m": "first"}
"""Name of a recorded battle -> who fights it."""


def battle_of(name: str, **options: Any) -> SmacParallel:
    if name == EASY.stem:
        return make("smaclite", "custom", map_file=str(EASY), **options)
    return make("smaclite", name.split()[0], **options)


def choose(policy: str, legal: list[np.ndarray], rng: np.random.Generator) -> list[int]:
    """first: attack the first enemy that can be, else stop. random: any legal action."""
    if policy == "random":
        return [int(rng.choice(np.flatnonzero(row))) for row in legal]
    return [0 if row[0] else next((a for a in range(6, len(row)) if row[a]), 1) for row in legal]


def play(battle: SmacParallel, actions: list[list[int]] | str, seed: int = 1) -> dict[str, Any]:
    """What an environment gave in one battle, as plain values. actions: of each step, or a policy
    that fights until the battle is over."""
    battle.reset(seed=seed)
    env, rng = battle.env, np.random.default_rng(seed)
    noted: dict[str, Any] = {"actions": [], "rewards": [], "legal": [], "states": []}
    noted["observation"] = numbers(env.get_obs())

    def note() -> None:
        noted["legal"].append(["".join(str(int(x)) for x in a) for a in env.get_avail_actions()])
        noted["states"].append(numbers(env.get_state()))

    note()
    over, won = False, False
    while not over and (isinstance(actions, str) or len(noted["actions"]) < len(actions)):
        if isinstance(actions, str):
            chosen = choose(actions, env.get_avail_actions(), rng)
        else:
            chosen = actions[len(noted["actions"])]
        _, reward, over, cut, info = env.step(chosen)
        assert cut is False and list(info) == ["battle_won"]
        won = info["battle_won"]
        noted["actions"].append(chosen)
        noted["rewards"].append(round(float(reward), 5))
        note()
    noted["states"] = noted["states"][:2] + noted["states"][-1:]
    return noted | {"over": bool(over), "won": bool(won)}


def numbers(values: Any) -> Any:
    return np.round(np.asarray(values, float), 5).tolist()


if __name__ == "__main__":
    battles = {name: play(battle_of(name), policy) for name, policy in POLICIES.items()}
    lines = [f'"{name}": {json.dumps(noted)}' for name, noted in battles.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    for name, noted in battles.items():
        print(name, len(noted["actions"]), noted["won"], sum(noted["rewards"]), file=sys.stderr)

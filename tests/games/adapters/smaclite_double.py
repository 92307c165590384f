"""A stand-in for SMAClite's `SMACliteEnv`, for maps of marines.

Its interface, the places where units begin, what is seen, what is legal and how rewards are scaled
are the library's. `test_smaclite.py` compares them with battles recorded from the library, and with
the library itself where it is installed. The fights are simpler: units walk through each other.
"""

import json
from typing import Any

import numpy as np

SIGHT, TARGET, REACH, SPEED = 9.0, 6.0, 5.75, 1.575  # cells; SPEED: of one step
HEALTH, DAMAGE, SIZE, GAP = 45.0, 6.0, 0.75, 0.05
WAYS = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])  # north, south, east, west
WIDTH = 32
GROUND = range(8, 24)  # rows of the terrain SIMPLE that can be walked on


class FakeUnit:
    """pos: where it stands. hp: its health. shot: it cannot shoot in this step."""

    def __init__(self, x: float, y: float):
        self.pos, self.hp, self.shot = np.array([x, y], np.float32), HEALTH, False


class FakeSMACliteEnv:
    """Actions as in SMAC: 0 nothing (the dead only), 1 stop, 2 to 5 move, 6 and up attack."""

    def __init__(
        self,
        map_info: Any = None,
        map_file: str | None = None,
        seed: int | None = None,
        use_cpp_rvo2: bool = False,
        render_mode: str = "human",
        **kwargs: Any,
    ):
        if map_info is None and map_file is None:
            raise ValueError("Either map_info or map_file must be provided.")
        print("Using the numpy RVO2 port")
        with open(str(map_file)) as file:
            self.map = json.load(file)
        self.n_agents, self.n_enemies = self.map["num_allied_units"], self.map["num_enemy_units"]
        self.n_actions = 6 + self.n_enemies
        self.obs_size = 4 + 5 * self.n_enemies + 5 * (self.n_agents - 1) + 1
        self.state_size = (4 + self.n_actions) * self.n_agents + 3 * self.n_enemies
        self.last_actions = np.zeros(self.n_actions * self.n_agents)
        self.render_mode = render_mode
        self.rng = np.random.default_rng(seed)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[tuple, dict]:
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.agents, self.enemies = (
            dict(enumerate(placed(group))) for group in self._groups("ALLY", "ENEMY")
        )
        full = self.n_enemies * (10 + HEALTH) + 200
        self.scale = full / 20
        return self.get_obs(), {"battle_won": False}

    def step(self, actions: list[int]) -> tuple[tuple, float, bool, bool, dict]:
        assert len(actions) == self.n_agents
        assert all(type(action) is int for action in actions)
        self.last_actions = np.eye(self.n_actions)[np.array(actions)].flatten()
        legal = self.get_avail_actions()
        for number, action in enumerate(actions):
            if number not in self.agents:
                assert action == 0
            elif not legal[number][action]:
                raise ValueError(f"Invalid action for agent {number}: {action}")
        reward = 0.0
        order = [(True, n) for n in self.agents] + [(False, n) for n in self.enemies]
        self.rng.shuffle(order)
        for ours, number in order:
            unit = (self.agents if ours else self.enemies)[number]
            if unit.hp > 0:
                reward += self._act(unit, actions[number]) if ours else self._defend(unit)
        self.agents = {n: unit for n, unit in self.agents.items() if unit.hp > 0}
        self.enemies = {n: unit for n, unit in self.enemies.items() if unit.hp > 0}
        reward += 200 * (not self.enemies)
        over = not self.enemies or not self.agents
        return self.get_obs(), reward / self.scale, over, False, {"battle_won": not self.enemies}

    def get_avail_actions(self) -> list[np.ndarray]:
        rows = np.zeros((self.n_agents, self.n_actions))
        for number in range(self.n_agents):
            unit = self.agents.get(number)
            if unit is None:
                rows[number, 0] = 1
                continue
            rows[number, 1] = 1
            for way, (x, y) in enumerate(unit.pos + WAYS):
                rows[number, 2 + way] = 0 <= x < WIDTH and int(y) in GROUND
            for other, enemy in self.enemies.items():
                rows[number, 6 + other] = distance(unit, enemy) <= TARGET
        return list(rows)

    def get_obs(self) -> tuple[np.ndarray, ...]:
        legal = self.get_avail_actions()
        seen = np.zeros((self.n_agents, self.obs_size), np.float32)
        for number, unit in self.agents.items():
            row = seen[number]
            row[:4] = legal[number][2:6]
            for other, enemy in self.enemies.items():
                if distance(unit, enemy) < SIGHT:
                    start = 4 + 5 * other
                    row[start : start + 5] = shown(legal[number][6 + other], unit, enemy)
            for other, ally in self.agents.items():
                if ally is not unit and distance(unit, ally) < SIGHT:
                    start = 4 + 5 * self.n_enemies + 5 * (other - (other > number))
                    row[start : start + 5] = shown(1.0, unit, ally)
            row[-1] = unit.hp / HEALTH
        return tuple(seen)

    def get_state(self) -> np.ndarray:
        ours = np.zeros((self.n_agents, 4), np.float32)
        theirs = np.zeros((self.n_enemies, 3), np.float32)
        for number, unit in self.agents.items():
            ours[number] = unit.hp / HEALTH, unit.shot, *((unit.pos - WIDTH / 2) / WIDTH)
        for number, unit in self.enemies.items():
            theirs[number] = unit.hp / HEALTH, *((unit.pos - WIDTH / 2) / WIDTH)
        state = np.concatenate([ours.reshape(-1), theirs.reshape(-1), self.last_actions])
        return state.astype(np.float32)

    def render(self) -> np.ndarray | None:
        if self.render_mode != "rgb_array":
            return None
        picture = np.full((WIDTH * 32, WIDTH * 32, 3), 214, np.uint8)
        for units, colour in ((self.agents, (56, 179, 73)), (self.enemies, (232, 93, 96))):
            for unit in units.values():
                column, row = (32 * unit.pos * (1, -1) + (0, WIDTH * 32)).astype(int)
                picture[row - 12 : row + 12, column - 12 : column + 12] = colour
        return picture

    def close(self) -> None:
        pass

    def _groups(self, *sides: str) -> list[dict]:
        by_side = {group["faction"]: group for group in self.map["groups"]}
        return [by_side[side] for side in sides]

    def _act(self, unit: FakeUnit, action: int) -> float:
        if action >= 6:
            return self._attack(unit, self.enemies[action - 6])
        if action >= 2:
            unit.pos = unit.pos + SPEED * WAYS[action - 2].astype(np.float32)
        unit.shot = False
        return 0.0

    def _defend(self, unit: FakeUnit) -> float:
        near = [a for a in self.agents.values() if a.hp > 0 and distance(unit, a) <= REACH]
        if near:
            self._attack(unit, min(near, key=lambda ally: distance(unit, ally)))
        else:
            self._walk(unit, np.array(self.map["attack_point"], np.float32))
        return 0.0

    def _attack(self, unit: FakeUnit, target: FakeUnit) -> float:
        if target.hp <= 0:
            return 0.0
        if distance(unit, target) > REACH:
            self._walk(unit, target.pos)
            return 0.0
        unit.shot = True
        done = min(DAMAGE, target.hp)
        target.hp -= done
        return done + 10.0 * (target.hp == 0)

    def _walk(self, unit: FakeUnit, place: np.ndarray) -> None:
        way = place - unit.pos
        far = float(np.linalg.norm(way))
        unit.pos = unit.pos + way * min(1.0, SPEED / max(far, 1e-6))


def placed(group: dict) -> list[FakeUnit]:
    """The marines of a group in rows of a square, enemies turned round."""
    count, turn = group["units"]["MARINE"], 1 if group["faction"] == "ALLY" else -1
    side = int(np.ceil(np.sqrt(count)))
    rows = [min(side, count - side * row) for row in range(side) if count > side * row]
    x0 = group["x"] - turn * SIZE * max(rows) / 2
    y0 = group["y"] - turn * (SIZE * len(rows) + (side - 1) * GAP) / 2
    step = SIZE + GAP
    return [
        FakeUnit(x0 + turn * (SIZE / 2 + column * step), y0 + turn * (SIZE / 2 + row * step))
        for row, units in enumerate(rows)
        for column in range(units)
    ]


def distance(one: FakeUnit, other: FakeUnit) -> float:
    return float(np.linalg.norm(one.pos - other.pos))


def shown(first: float, unit: FakeUnit, other: FakeUnit) -> list[float]:
    """What one unit sees of another."""
    x, y = (other.pos - unit.pos) / SIGHT
    return [first, distance(unit, other) / SIGHT, x, y, other.hp / HEALTH]

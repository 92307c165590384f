"""Learners and own players by name. The tables import what they list, so nothing is registered by a
side effect."""

from collections.abc import Callable
from typing import Any

import equinox as eqx

from coplay.algorithms.advantage_alignment.config import AdvantageAlignmentConfig
from coplay.algorithms.advantage_alignment.learner import AdvantageAlignment
from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.learner import HOP
from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.algorithms.influence.config import InfluenceConfig
from coplay.algorithms.influence.learner import Influence
from coplay.algorithms.liam.config import LIAMConfig
from coplay.algorithms.liam.learner import LIAM
from coplay.algorithms.mappo.config import HyperMAPPOConfig, MAPPOConfig
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.mappo.learner import MAPPO
from coplay.algorithms.plastic.config import PlasticConfig
from coplay.algorithms.plastic.learner import Plastic
from coplay.algorithms.ppo.config import PPOConfig, RecurrentPPOConfig
from coplay.algorithms.ppo.learner import PPO
from coplay.algorithms.ppo.recurrent import RecurrentPPO
from coplay.algorithms.rl2.config import RL2Config
from coplay.algorithms.rl2.learner import RL2
from coplay.algorithms.scripted import Scripted
from coplay.algorithms.varibad.config import VariBADConfig
from coplay.algorithms.varibad.learner import VariBAD
from coplay.core.errors import UserError, own, unknown, wrong_signature
from coplay.core.game import ScriptedPolicy
from coplay.core.learner import Learner
from coplay.core.player import Player
from coplay.nn.networks import check_entities

LEARNERS: dict[str, tuple[type, Callable[..., Learner]]] = {
    "ppo": (PPOConfig, PPO),
    "ppo-gru": (RecurrentPPOConfig, RecurrentPPO),
    "rl2": (RL2Config, RL2),
    "liam": (LIAMConfig, LIAM),
    "varibad": (VariBADConfig, VariBAD),
    "plastic": (PlasticConfig, Plastic),
    "advantage-alignment": (AdvantageAlignmentConfig, AdvantageAlignment),
    "influence": (InfluenceConfig, Influence),
    "hop": (HOPConfig, HOP),
    "hop-plus": (HopPlusConfig, HopPlus),
    "mappo": (MAPPOConfig, MAPPO),
    "hyper-mappo": (HyperMAPPOConfig, HyperMAPPO),
}
"""name -> (configuration, learner); see `Learner` for how a learner is made."""


PLAYERS: dict[str, Player] = {}
"""name -> a player of a user's own, which sits in any seat."""

_UNREGISTERED: set[str] = set()  # names in `PLAYERS` that nobody chose

_RESERVED = ("random", "switcher", "mix", "learning")


def register_learner(name: str, config: type, learner: Callable[..., Learner]) -> None:
    """Make a learner known by a name: to `coplay.train`, to seatings and to audits.

    config: a frozen dataclass; its fields become options of the command line. learner: made as said
        in `Learner`.

        @dataclass(frozen=True)
        class A2CConfig:
            learning_rate: float = 1e-3

        coplay.register_learner("a2c", A2CConfig, A2C)
        coplay.train("a2c", "stag-hunt", learning_rate=3e-4)
    """
    _check_name(name)
    LEARNERS[name] = (config, learner)


def learner_parts(name: str) -> tuple[type, Callable[..., Learner]]:
    """The configuration and the class of a learner by its name; both can be derived from.

    PPOConfig, PPO = coplay.learner_parts("ppo")

    class Bolder(PPO):
        def player(self, state, seat, greedy=True):
            return super().player(state, seat, greedy)

    coplay.register_learner("bolder", PPOConfig, Bolder)
    """
    if name not in LEARNERS:
        raise UserError(f"{unknown('player to train', name, LEARNERS)}; {own('learner')}")
    return LEARNERS[name]


def new_learner(kind: Callable[..., Learner], **fields: Any) -> Learner:
    """A learner made by what `learner_parts` gave; see `Learner` for its fields. An error if its
    networks read lists of entities, and views have none."""
    network = getattr(fields["config"], "network", None)
    if getattr(network, "kind", "") == "entities":
        check_entities(fields["shape"])
    made: Callable[..., Learner] = getattr(kind, "made", kind)
    return made(**fields)


def register_player(name: str, player: Player | type[Player] | ScriptedPolicy) -> None:
    """Make a player known by a name: to seatings, adaptations and datasets.

    player: a `Player`, a class of players that is made without arguments, or a scripted policy: a
        function `(game, ego_state) -> probabilities of the actions`.

        def stay(game, state):
            return jnp.eye(game.actions)[4]

        coplay.register_player("stay", stay)
        coplay.play("stag-hunt", "stay,ns,ns,ns")
    """
    _check_name(name)
    if name in LEARNERS:
        raise UserError(f"'{name}' is a learner: choose another name for the player")
    PLAYERS[name] = _as_player(player)
    _UNREGISTERED.discard(name)


def entry_of(player: str | Player | type[Player] | ScriptedPolicy) -> str:
    """How a seating names a player. One that is not registered gets the name of its class, or of
    its function, in this process."""
    if isinstance(player, str):
        return player
    made = _as_player(player)
    for name, known in PLAYERS.items():
        if known is made or _alike(known, made):
            return name
    kind: Any = made.policy if isinstance(made, Scripted) else type(made)
    plain = getattr(kind, "__name__", "policy").strip("<>")
    name, number = plain, 2
    while name in PLAYERS or name in LEARNERS or name in _RESERVED:
        name, number = f"{plain}-{number}", number + 1
    PLAYERS[name] = made
    _UNREGISTERED.add(name)
    return name


def is_unregistered(name: str) -> bool:
    """Whether only this process knows a player by this name."""
    return name in _UNREGISTERED


def _as_player(player: Any) -> Player:
    if isinstance(player, Player):
        return player
    if isinstance(player, type) and issubclass(player, Player):
        return player()
    if callable(player) and not isinstance(player, type):
        name = getattr(player, "__name__", repr(player))
        if wrong := wrong_signature(f"scripted player '{name}'", player, "game", "state"):
            raise UserError(wrong)
        return Scripted(player)
    raise UserError(
        f"{player!r} is no player: give a coplay.Player, or a function (game, ego_state) -> "
        "probabilities of the actions"
    )


def _alike(one: Player, other: Player) -> bool:
    """Whether two players are made of the same values."""
    return type(one) is type(other) and bool(eqx.tree_equal(one, other))


def _check_name(name: str) -> None:
    if not name or any(sign in name for sign in ",:@=/ ") or name in _RESERVED:
        raise UserError(
            f"'{name}' cannot name a player: a name has none of , : @ = / and no space, and is "
            f"none of {', '.join(_RESERVED)}"
        )

"""Personas: players of self-play that for some episodes value other rewards than the game's.

They let learners meet more than themselves. In some game copies the players are always themselves.
In the others most of them have a persona for some episodes: one of those the game declares
(`Goals.personas`), so that they value only a part of what the game rewards; or the random persona,
which acts at random, every other time with actions that it prefers and avoids. Groups of players
are of three kinds, each as frequent: one player is itself among players with the same persona; one
is itself among players with any personas; all have any personas. In the last kind, players with a
persona also meet nobody to follow its goal with. A persona is a pure function of a seed, the game
copy and the number of its episode, so it need not be recorded to be known afterwards.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from coplay.core.config import (
    Config,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    Share,
    only_if,
)
from coplay.search.simulator import mix_bits

NO_PERSONA = -1

PREFERRED, AVOIDED = 1.5, 4.0
"""What a random persona adds to the logit of an action that it prefers, and takes off one that it
avoids."""


class PersonaSeed(NamedTuple):
    """What a seat's personas are computed from. table: the same for all seats of a run. seat: a
    number of its own, which moves with the seats in an audit."""

    table: UInt32[Array, "*batch"]
    seat: UInt32[Array, "*batch"]


@dataclass(frozen=True)
class PersonaConfig(Config):
    """Personas in self-play."""

    share: Share = 0.5
    """Share of the game copies in which seats have personas: they value only a part of the
    rewards, or act at random; 0: nobody ever has one (the paper)."""
    first_episode: Annotated[NonNegativeInt, only_if(".share")] = 0
    """Episodes that each of these copies plays without personas first. With guide_search=False
    about 150 are needed: among strangers from the start, players without guides settle for what
    needs nobody (in Stag Hunt for hares)."""
    curriculum: Annotated[NonNegativeInt, only_if(".share")] = 0
    """First episodes of every copy in which all seats have the same persona, by turns. Where random
    play hardly ever reaches a persona's goal (a stag on a large board), it is learned there."""
    episodes: Annotated[PositiveInt, only_if(".share")] = 16
    """Episodes for which a seat keeps a persona."""
    beta: Annotated[NonNegativeFloat, only_if(".share"), only_if("planner", "search")] = 40.0
    """beta of personas, which go straight for their only goal."""
    guide_search: Annotated[bool, only_if(".share"), only_if("planner", "search")] = True
    """Search also tries what the player would do with each persona, and values a position by the
    highest of their values. It does so while learning, too."""

    random_rates: Annotated[bool, only_if(".share")] = True
    """Let random personas prefer and avoid actions, each its own. False: they take all legal
    actions alike."""

    @property
    def guides(self) -> bool:
        """Whether personas guide searches."""
        return self.guide_search and self.share > 0

    def assign(
        self, seed: PersonaSeed, episode: Int[Array, "*batch copy"], personas: int, seats: int
    ) -> Int[Array, "*batch copy"]:
        """The persona of one of so many seats in each copy: `NO_PERSONA`, one of the game's
        0 … personas - 1, or `personas`: the random one."""
        copies = episode.shape[-1]
        copy, turn = self._turns(episode)
        word, mine = self._words(seed, episode)
        group = (word >> 8) % 3
        # Without personas of the game there is only the random one.
        shared = mix_bits(word) % jnp.uint32(max(personas, 1))
        kind = jnp.where(group == 0, shared, mine % jnp.uint32(personas + 1))
        itself = (word % jnp.uint32(seats) == seed.seat) & (group < 2)
        plain = (copy >= round(self.share * copies)) | (episode < self.first_episode)
        who = jnp.where(itself | plain, NO_PERSONA, kind.astype(jnp.int32))
        if not (self.share and self.curriculum and personas):
            return who
        lesson = (copy + turn) % jnp.uint32(personas)
        return jnp.where(episode < self.curriculum, lesson.astype(jnp.int32), who)

    def rates(
        self, seed: PersonaSeed, episode: Int[Array, "*batch copy"], actions: int
    ) -> Float[Array, "*batch copy action"]:
        """The logits by which one of the seats acts where it has the random persona. Every other
        one takes all actions alike; else a quarter is avoided, and a quarter preferred."""
        if not self.random_rates:
            return jnp.zeros((*episode.shape, actions))
        mine = self._words(seed, episode)[1]
        number = (jnp.arange(actions, dtype=jnp.uint32) + 1) * jnp.uint32(0x27D4EB2F)
        kind = (mix_bits(mine[..., None] + number) >> 8) % 4
        tilt = jnp.where(kind == 0, -AVOIDED, jnp.where(kind == 1, PREFERRED, 0.0))
        return jnp.where(((mine >> 16) % 2 == 0)[..., None], tilt, 0.0)

    def _turns(
        self, episode: Int[Array, "*batch copy"]
    ) -> tuple[UInt32[Array, " copy"], UInt32[Array, "*batch copy"]]:
        """The number of each copy, and how many personas its seats had before."""
        copy = jnp.arange(episode.shape[-1], dtype=jnp.uint32)
        return copy, (episode // self.episodes).astype(jnp.uint32)

    def _words(
        self, seed: PersonaSeed, episode: Int[Array, "*batch copy"]
    ) -> tuple[UInt32[Array, "*batch copy"], UInt32[Array, "*batch copy"]]:
        """Random bits of the group of players, and of one of its seats."""
        copy, turn = self._turns(episode)
        word = mix_bits(
            mix_bits(seed.table + copy * jnp.uint32(0x9E3779B1)) + turn * jnp.uint32(0x85EBCA6B)
        )
        return word, mix_bits(word + (seed.seat + 1) * jnp.uint32(0xC2B2AE35))

"""Every logged metric. `…` stands for a seat: `reward/seat_0`, `reward/seat_1`, …"""

import math
from collections.abc import Collection, Mapping
from typing import Any

_EVERY_RUN = {
    "team_mean": "mean over seats of the reward per episode, over the episodes that ended",
    "episodes": "how many episodes ended in the iteration",
    "steps_per_second": "game steps per second since the last row, all game copies of all seeds",
    "reward/…": "mean reward per episode of the seat, over the episodes that ended",
    "length/…": "mean number of steps the seat was in the game, over the episodes that ended",
    "action_<name>/…": "share of the action among the seat's actions while in the game",
}

_POLICY = {
    "policy_loss/…": "clipped policy loss",
    "value_loss/…": "half the squared error of the critic against the advantage targets",
    "entropy/…": "entropy of the policy in nats, over legal actions",
    "explained_variance/…": "1 - Var(target - value) / Var(target), value before the update",
    "value/…": "mean value the critic gave before the update",
}

_UPDATES = {
    "kl/…": "KL(old policy || new policy), exact, mean over samples",
    "clip_fraction/…": "share of samples whose probability ratio left the clipping range",
    "gradient_norm/…": "norm of actor's and critic's gradient together, before clipping",
}

_TEAM = {
    "ratio_error/…": "largest |ratio - 1| as an update begins: 0 but for rounding",
    "policy_shift_kl/…": "KL(policy before || after the update), exact, on some samples",
    "policy_shift_kl_joint/…": "the same of all agents together: the sum over who acts",
    "policy_shift_ess/…": "effective sample size of the agents' joint ratio, as a share",
    "policy_shift_others/…": "mean |ratio of all others together - 1|: how far they went",
    "policy_shift_clip/…": "share of the agent's ratios outside of the clipping range",
    "gradient_cosine/…": "mean cosine of the agent's policy gradient with the others'",
    "diversity/…": "mean Jensen-Shannon distance of its policy to the others' on its views",
}

_HYPERNETWORK = {
    "increment_norm/…": "mean norm of the generated increments of the weights",
    "increment_step/…": "mean norm of their change from step to step, of the base's",
    "smooth_loss/…": "mean squared change of generated weights from step to step",
    "anchor_loss/…": "mean squared distance to what the slow copy generates",
}

_OTHERS = {
    "others_view_loss/…": "mean squared error of others' views, from the embedding; liam, hop-plus",
    "others_action_loss/…": "cross-entropy of others' actions; not varibad; influence: the next",
    "others_top1/…": "share of others' actions held most probable; not varibad",
    "influence/…": "mean influence of the seat's actions on others' next ones, in nats; influence",
    "others_error/…": "-log p of others' actions in the meeting, by a belief, per step; varibad",
    "belief_kl/…": "KL of a belief to the one before it, unweighted, per step; varibad",
    "code_loss/…": "squared distance of codes to those of the others' own past; hop-plus",
}

_OPPONENTS = {
    "opponent_loss/…": "cross-entropy of the seat's opponent models on co-players' actions",
    "opponent_top1/…": "share of co-players' actions that were predicted as the most probable",
    "opponent_top3/…": "share of co-players' actions among the three predicted as most probable",
    "opponent_oracle_top1/…": "opponent_top1 of an oracle that knows the policies of all",
    "opponent_share_of_oracle/…": "opponent_top1 as a share of opponent_oracle_top1; of hop alone",
}

_ACTIONS = {
    "opponent_count_<name>/…": "how often co-players took the action, with a known goal",
    "opponent_ratio_<name>/…": "share of the action among co-players' actions",
    "opponent_precision_<name>/…": "of the actions predicted as this one, the share that was",
    "opponent_recall_<name>/…": "of these actions, the share that was predicted",
    "opponent_f1_<name>/…": "harmonic mean of precision and recall",
}

_GOALS = {
    "opponent_loss_before_update/…": "opponent_loss on what was just played",
    "opponent_later_loss/…": "opponent_loss on later actions, by codes of a gru",
    "prototype_loss/…": "-log likelihood of segments by the prototypes, per step",
    "goal_action_loss/…": "cross-entropy of actions, given the selected board's code",
    "goal_reconstruction/…": "error of reconstructing the selected board from its code",
    "inferred_reconstruction/…": "the same from the inferred code",
    "goal_kl/…": "KL of a board's code to N(0, 1), unweighted",
    "inferred_kl/…": "KL of the inferred code to the selected board's, unweighted",
    "goal_value_loss/…": "half the squared error of the selector's value",
}

_WORLD = {
    "world_move_loss/…": "cross-entropy of where players go",
    "world_cell_loss/…": "cross-entropy of what is in each cell, summed",
    "world_reward_loss/…": "cross-entropy of the reward",
    "world_exit_loss/…": "cross-entropy of leaving the game",
    "world_legal_loss/…": "cross-entropy of legal actions, summed",
    "world_exact/…": "share of steps in the buffer whose next board is exactly right",
}

_IMAGINATION = {
    "real_policy_loss/…": "policy loss on real steps alone, after the update",
    "real_value_loss/…": "value loss on real steps alone, after the update",
    "real_return/…": "mean target of the critic over real steps",
    "real_reward/…": "mean reward of a real step",
    "imagined_policy_loss/…": "policy loss on imagined steps alone, after the update",
    "imagined_value_loss/…": "value loss on imagined steps alone, after the update",
    "imagined_return/…": "mean target of the critic over imagined steps",
    "imagined_reward/…": "mean reward of an imagined step",
    "strangers_policy_loss/…": "policy loss on steps among strangers alone, after the update",
    "strangers_value_loss/…": "value loss on steps among strangers alone, after the update",
    "strangers_return/…": "mean target of the critic over steps among strangers",
    "strangers_reward/…": "mean reward of a step among strangers",
}

_MODELS = ("liam", "varibad", "plastic", "influence")
_PPO = ("ppo", "ppo-gru", "rl2", "advantage-alignment", *_MODELS, "hop-plus")
_TEAMS = ("mappo", "hyper-mappo")
_ALL = (*_PPO, "hop", *_TEAMS)

GROUPS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "Every run": (_ALL, _EVERY_RUN),
    "Policy and critic": (_ALL, _POLICY),
    "Updates of the policy": ((*_PPO, *_TEAMS), _UPDATES),
    "Teams": (_TEAMS, _TEAM),
    "Hypernetwork": (("hyper-mappo",), _HYPERNETWORK),
    "Models of others": ((*_MODELS, "hop-plus"), _OTHERS),
    "Opponent model": (("hop", "hop-plus"), _OPPONENTS),
    "Opponent model, by action": (("hop", "hop-plus"), _ACTIONS),
    "Goals": (("hop-plus",), _GOALS),
    "World model": (("hop-plus",), _WORLD),
    "Imagination": (("hop-plus",), _IMAGINATION),
}
"""Heading -> (the learners that may write them, metric -> its meaning). Which of them a run writes
depends on its configuration."""

METRICS = {name: words for _, table in GROUPS.values() for name, words in table.items()}


def plain_name(name: str) -> str:
    """The row of the table that a logged name belongs to: `kl/…` of `kl/seat_2`."""
    kind, slash, _ = name.partition("/")
    for title in METRICS:
        stem, by_action, _ = title.partition("<name>")
        if by_action and kind.startswith(stem):
            kind = stem + "<name>"
    return kind + "/…" if slash else kind


def describe(name: str) -> str | None:
    """What a logged name such as `kl/seat_2` means; None for a name that is not in the table."""
    return METRICS.get(plain_name(name))


def blame(row: Mapping[str, Any], active: Collection[int]) -> str:
    """What a row of the log holds that is no number, and what usually brings it about; empty: all
    is well.

    active: the seats that learn. A reward that is no number is the game's fault, and stands before
    all that follows from it.
    """
    where = f"at step {row['step']} (seed {row['seed']})"
    for name, value in row.items():
        if name.startswith("reward/") and row["episodes"] and not math.isfinite(value):
            return f"the game gave rewards that are no numbers: {name} is {value} {where}. "
    for name, value in row.items():
        kind, _, seat = name.partition("/seat_")
        learned = kind not in ("reward", "length") and not kind.startswith("action_")
        if seat and int(seat) in active and learned and not math.isfinite(value):
            return (
                f"{name} became {value} {where}. A smaller optimiser.learning_rate or "
                "optimiser.max_grad_norm usually helps. "
            )
    return ""

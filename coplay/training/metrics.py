"""Every logged metric, in one table. `…` stands for a seat: `reward/seat_0`, `reward/seat_1`, …"""

METRICS = {
    "team_mean": "mean over seats of the reward per episode, over the episodes that ended",
    "episodes": "how many episodes ended in the iteration",
    "steps_per_second": "game steps per second since the last row, all game copies of all seeds",
    "reward/…": "mean reward per episode of the seat, over the episodes that ended",
    "length/…": "mean number of steps the seat was in the game, over the episodes that ended",
    "policy_loss/…": "clipped policy loss (last pass over the rollout, like all losses here)",
    "value_loss/…": "half the squared error of the critic against the advantage targets",
    "entropy/…": "entropy of the policy in nats, over legal actions",
    "kl/…": "KL(old policy || new policy), exact, mean over samples",
    "clip_fraction/…": "share of samples whose probability ratio left the clipping range",
    "explained_variance/…": "1 - Var(target - value) / Var(target), value before the update",
    "gradient_norm/…": "norm of actor's and critic's gradient together, before clipping",
    "value/…": "mean value the critic gave before the update",
    "action_<name>/…": "share of the action among the seat's actions while in the game",
}


def describe(name: str) -> str | None:
    """What a logged name such as `kl/seat_2` means; None for a name that is not in the table."""
    kind, slash, _ = name.partition("/")
    if kind.startswith("action_"):
        kind = "action_<name>"
    return METRICS.get(kind + "/…" if slash else kind)

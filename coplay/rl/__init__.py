"""The numerics of learning, each written once: advantages, the PPO loss, value normalisation,
parameter sets, measures of non-stationarity.
Not here: networks, and the order in which an algorithm does things."""

"""RL²: recurrent PPO that maximises the rewards of a whole meeting."""

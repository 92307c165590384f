"""Advantage Alignment: PPO that makes what is good for others likelier after good experience."""

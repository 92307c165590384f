"""Social influence: PPO that is rewarded for changing what others do next."""

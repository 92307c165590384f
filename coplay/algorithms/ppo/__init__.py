"""Independent PPO and its recurrent form."""

"""HOP+: goals as latent codes, a model of others, a model of the world, PPO, imagination."""

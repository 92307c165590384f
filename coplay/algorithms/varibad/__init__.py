"""VariBAD: a policy that is given its belief about whom it plays with, a latent's distribution."""

"""LIAM: a policy that is given an embedding of its own history, trained to reconstruct others."""

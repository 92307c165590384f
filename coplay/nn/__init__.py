"""Layers and networks: encoders, recurrent cells, hypernetworks, equivariant and ego-centred ones,
and the categorical distribution over legal actions.
Not here: losses, optimisers, and what a network is used for."""

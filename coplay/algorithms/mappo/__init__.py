"""MAPPO, and HyperMAPPO, whose actor weights a hypernetwork makes."""

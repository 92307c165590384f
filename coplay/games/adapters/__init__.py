"""Games of other libraries: JaxMARL compiled, PettingZoo and SMAC in worker processes; our games as
PettingZoo environments.
Not here: rules of our own."""

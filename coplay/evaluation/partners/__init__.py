"""Partners that a player has not met: how their families are made, and what they are like.
Reading a pack lives in `coplay.training.partner_packs`; meeting its partners in
`coplay.evaluation.adaptation`."""

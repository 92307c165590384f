"""Scripted players in the four seats of Stag Hunt."""

import coplay

game = coplay.make_game("stag-hunt", height=8, width=8, walls=5)
result = coplay.play(game, "ns,ns,nh,random", episodes=1000, seed=0)
for seat, row in enumerate(result["seats"]):
    print(f"seat {seat}: {row['player']:8} {row['reward']:.2f} ± {row['stderr']:.2f}")

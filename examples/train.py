"""Train one PPO player among three stag hunters, then seat it beside others."""

import tempfile

import coplay

with tempfile.TemporaryDirectory() as folder:
    summary = coplay.train(
        "ppo", "stag-hunt", f"{folder}/run", seating="ppo,ns,ns,ns", steps=200_000, seed=0
    )
    print(f"among three stag hunters: {summary['seats'][0]['reward']:.2f}")
    result = coplay.play("stag-hunt", f"{folder}/run,ns,nh,random", episodes=2000)
    print(f"among ns, nh and random:  {result['seats'][0]['reward']:.2f}")

"""Look at an episode step by step; then step a player in a loop of one's own."""

import jax

import coplay

for step in coplay.episodes("stag-hunt", "ns,ns,nh,random", seed=1):
    print(f"t {step.time}: actions {step.actions}, rewards {step.rewards}")
    print(f"  seat 3 chose action {step.actions[3]} from {step.probabilities[3].round(2)}")

# A trained player works alike: player = coplay.load_run("runs/ppo").player(seat=0)
game = coplay.make_game("stag-hunt")
player = coplay.step_player("random", game)
state = game.reset(jax.random.key(0))
for time in range(3):
    seen = jax.tree.map(lambda x: x[0], game.observe(state))
    action = player.act(seen)
    print(f"t {time}: the player of seat 0 does {game.action_names[action]}")
    others = [4] * (game.seats - 1)
    state, outcome = game.step(jax.random.key(time), state, jax.numpy.array([action, *others]))

"""A game as a PettingZoo environment: one episode of random legal actions."""

import coplay

env = coplay.to_pettingzoo(coplay.make_game("stag-hunt"), render_mode="ansi")
observations, infos = env.reset(seed=0)
returns = dict.fromkeys(env.agents, 0.0)
while env.agents:
    actions = {
        agent: env.action_space(agent).sample(observations[agent]["action_mask"])
        for agent in env.agents
    }
    observations, rewards, terminations, truncations, infos = env.step(actions)
    for agent, reward in rewards.items():
        returns[agent] += reward
print(env.render())
print(returns)
env.close()

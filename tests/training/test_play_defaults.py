"""Players of a run may play otherwise than they were trained, and it is said in which fields."""

from coplay.algorithms.hop.config import HOPConfig, HOPSearchConfig
from coplay.algorithms.ppo.config import PPOConfig
from coplay.training.play_defaults import playing, plays_otherwise


def test_fields_that_the_run_left_alone_are_set_for_playing() -> None:
    config = HOPConfig(search=HOPSearchConfig(simulations=8))
    assert playing(config).search.simulations == 8
    assert playing(config).search.draws == HOPConfig.play_defaults["search.draws"]


def test_what_differs_is_named() -> None:
    assert "search.simulations=64" in plays_otherwise(HOPConfig())
    named = plays_otherwise(HOPConfig(search=HOPSearchConfig(simulations=8)))
    assert not any(text.startswith("search.simulations") for text in named)
    assert any(text.startswith("search.draws") for text in named)
    assert plays_otherwise(PPOConfig()) == []

"""What SMAC, SMACv2 and SMAClite are asked for by the name of a map.

The figures are those of the libraries: the time limits are in SMAC's table of maps, the settings of
SMACv2 in its example configurations.
"""

import re
from pathlib import Path
from typing import Any

from coplay.core.errors import UserError, unknown

LIMITS = {
    "10m_vs_11m": 150,
    "27m_vs_30m": 180,
    "2c_vs_64zg": 400,
    "2s3z": 120,
    "2s_vs_1sc": 300,
    "3m": 60,
    "3s5z": 150,
    "3s5z_vs_3s6z": 170,
    "3s_vs_5z": 250,
    "bane_vs_bane": 200,
    "corridor": 400,
    "MMM": 150,
    "MMM2": 180,
}
"""Map of SMAClite -> steps after which SMAC ends its battle. SMAClite itself never does."""

OWN_MAPS = {"3m": Path(__file__).parent / "maps" / "3m.json"}
"""Maps that SMAClite does not have -> our file in its format."""

CUSTOM = "custom"  # a map of the user, in the file of the option map_file
CUSTOM_LIMIT = 200  # its steps, unless the option episode_limit says

RACES: dict[str, dict[str, Any]] = {
    "terran": {
        "unit_types": ["marine", "marauder", "medivac"],
        "weights": [0.45, 0.45, 0.1],
        "exception_unit_types": ["medivac"],
    },
    "protoss": {
        "unit_types": ["stalker", "zealot", "colossus"],
        "weights": [0.45, 0.45, 0.1],
    },
    "zerg": {
        "unit_types": ["zergling", "baneling", "hydralisk"],
        "weights": [0.45, 0.1, 0.45],
        "exception_unit_types": ["baneling"],
    },
}
"""Race of SMACv2 -> which units its teams are drawn from. Exceptions cannot be a whole team."""

SCENARIO = re.compile(r"(terran|protoss|zerg)_([1-9][0-9]*)_vs_([1-9][0-9]*)(_epo)?")
MAP = re.compile(r"10gen_(terran|protoss|zerg)")
SIZE = 5  # units of each side on a map that is named without numbers, as in SMACv2's files


def battle_options(library: str, map_name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of an environment on this map. given: the user's, which come first.

    `episode_limit` among them is for the adapter: SMAClite has no such argument.
    """
    if library == "smaclite":
        return _smaclite(map_name, given)
    # A battle without a winner after its last step is then told from one that is lost.
    options: dict[str, Any] = {"continuing_episode": True}
    if library == "smacv2":
        return options | _smacv2(map_name, given) | given
    return options | {"map_name": map_name} | given


def own_map(library: str, map_name: str) -> bool:
    """Whether the map is ours and not the library's."""
    return library == "smaclite" and map_name in OWN_MAPS


def _smaclite(map_name: str, given: dict[str, Any]) -> dict[str, Any]:
    limit = {"episode_limit": LIMITS.get(map_name, CUSTOM_LIMIT)}
    if map_name == CUSTOM:
        if "map_file" not in given:
            raise UserError(
                f"smaclite:{CUSTOM} needs a file with the map: --game.options map_file=PATH"
            )
        return limit | given
    if map_name in OWN_MAPS:
        return limit | {"map_file": str(OWN_MAPS[map_name])} | given
    from smaclite.env.maps.map import MapPreset

    known = {preset.value.name: preset.value for preset in MapPreset}
    if map_name not in known:
        raise unknown("map of SMAClite", map_name, [*known, *OWN_MAPS, CUSTOM])
    return limit | {"map_info": known[map_name]} | given


def _smacv2(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Settings of `terran_10_vs_11` or of the map `10gen_terran`; `_epo`: an enemy is shown only to
    the unit that sees it first, and attacks are legal at any distance."""
    scenario, plain = SCENARIO.fullmatch(name), MAP.fullmatch(name)
    if scenario:
        race, ours, theirs = scenario[1], int(scenario[2]), int(scenario[3])
    elif plain:
        race, ours, theirs = plain[1], SIZE, SIZE
    elif "capability_config" in given:
        return {"map_name": name}
    else:
        raise UserError(
            f"smacv2:{name} is no scenario of SMACv2: its names are {', '.join(RACES)}_5_vs_5 and "
            "the like, or give the option capability_config"
        )
    options: dict[str, Any] = {
        "map_name": f"10gen_{race}",
        "conic_fov": False,
        "num_fov_actions": 12,
        "obs_own_pos": True,
        "use_unit_ranges": True,
        "min_attack_range": 2,
        "capability_config": {
            "n_units": ours,
            "n_enemies": theirs,
            "team_gen": {"dist_type": "weighted_teams", "observe": True} | RACES[race],
            "start_positions": {
                "dist_type": "surrounded_and_reflect",
                "p": 0.5,
                "map_x": 32,
                "map_y": 32,
            },
        },
    }
    if scenario and scenario[4]:
        options |= {"prob_obs_enemy": 0.0, "action_mask": False}
    return options

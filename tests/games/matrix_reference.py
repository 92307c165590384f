"""Iterated matrix games in plain Python: pay-offs by their names, players by their histories.

Nothing comes from the compiled game. A history is the list of joint actions so far.
"""

from fractions import Fraction

History = list[tuple[int, ...]]

PRISONERS = {(0, 0): 3, (0, 1): 0, (1, 0): 5, (1, 1): 1}  # (own, other's) -> pay-off


def pay(joint: tuple[int, ...], seat: int) -> int:
    """The prisoner's dilemma of two."""
    return PRISONERS[joint[seat], joint[1 - seat]]


def sure(action: int) -> list[Fraction]:
    return [Fraction(int(action == index)) for index in range(2)]


def policy(name: str, history: History, seat: int) -> list[Fraction]:
    """The probabilities of a scripted player of the prisoner's dilemma of two."""
    theirs = [joint[1 - seat] for joint in history]
    if name.startswith("mixture-"):
        share = Fraction(int(name.removeprefix("mixture-")), 100)
        return [share, 1 - share]
    if name == "always-cooperate":
        return sure(0)
    if name == "always-defect":
        return sure(1)
    if name == "tit-for-tat":
        return sure(theirs[-1] if theirs else 0)
    if name == "suspicious":
        return sure(theirs[-1] if theirs else 1)
    if name == "grim":
        return sure(int(1 in theirs))
    if name == "generous":
        defected = bool(theirs) and theirs[-1] == 1
        return [Fraction(1, 3), Fraction(2, 3)] if defected else sure(0)
    assert name == "win-stay-lose-shift"
    if not history:
        return sure(0)
    mine = history[-1][seat]
    return sure(mine if pay(history[-1], seat) in (3, 5) else 1 - mine)

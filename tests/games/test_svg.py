"""Icons as SVG."""

import xml.etree.ElementTree as ET

import pytest

from coplay.games.board.drawing import drift_icon, hare_icon, stag_icon
from coplay.games.svg import SvgPen, icon_svg


@pytest.mark.parametrize("icon", [stag_icon, hare_icon, drift_icon])
def test_icons_are_well_formed_and_stay_in_their_square(icon) -> None:
    read = ET.fromstring(f"<svg>{icon_svg(icon)}</svg>")
    assert len(read) > 5
    for shape in read:
        for point in (shape.get("points") or "0,0").split():
            assert all(abs(float(value)) <= 0.55 for value in point.split(","))
        assert abs(float(shape.get("cx", 0))) + float(shape.get("rx", 0)) <= 0.6


def test_words_and_colours_are_escaped() -> None:
    pen = SvgPen()
    pen.text(0, 0, "</text><script>", 1.0, colour='"><x', anchor="mm", bold=True)
    pen.rectangle(0, 0, 1, 2, (255, 0, 16))
    text, rectangle = ET.fromstring(f"<svg>{''.join(pen.elements)}</svg>")
    assert text.text == "</text><script>" and text.get("fill") == '"><x'
    assert rectangle.get("fill") == "#FF0010"

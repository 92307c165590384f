"""Fields of dataclasses as tables in Markdown."""

from coplay.cli.fields import Field, default_text, explained, option_name, values_text

PIPE = r"\|"
"""A vertical bar inside of a table."""


def table(fields: list[Field], sign: str = "", heading: str = "field") -> str:
    """A Markdown table. sign: what stands before a name, `--` for options."""
    rows = [f"| {heading} | default | values | meaning |", "|---|---|---|---|"]
    for field in fields:
        name = field.name.upper() if field.positional else option_name(field.name, sign)
        words = _escaped(values_text(field.hint))
        rows.append(
            f"| `{name}` | {default_text(field.default)} | {words} | {_escaped(explained(field))} |"
        )
    return "\n".join(rows)


def _escaped(text: str) -> str:
    return text.replace("|", PIPE)

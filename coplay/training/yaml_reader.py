"""YAML as people mean it: numbers, texts, lists and tables, by the rules of YAML 1.2.

PyYAML by itself reads 1e-3 as a text, `no` as false and 1:30 as 90, lets the later of two fields of
one name win, and follows references, by which a small file can become a huge one.
"""

import re
from typing import Any, ClassVar

import yaml

_PLAIN = (
    ("bool", r"true|True|TRUE|false|False|FALSE"),
    ("int", r"[-+]?(0|[1-9][0-9_]*)"),
    ("float", r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan"),
    ("null", r"~|null|Null|NULL|"),
)
"""What a value without quotation marks is, the first that fits; else it is a text."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader: it makes numbers, texts, lists and tables, and nothing else."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise _wrong("references (*NAME) are not read", self.peek_event())
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise _wrong("the name of a field is a word", name)
            if name.value in found:
                raise _wrong(f"'{name.value}' is there twice", name)
            found[name.value] = self.construct_object(value, deep=True)
        return found

    def construct_nothing(self, node: Any) -> Any:
        """A name with nothing behind it is a table without fields; null is said by `none`."""
        return "none" if node.value else {}


for _kind, _pattern in _PLAIN:
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_pattern})$"), None
    )
_Loader.add_constructor("tag:yaml.org,2002:null", _Loader.construct_nothing)


def _wrong(words: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=words, problem_mark=place.start_mark)


def read_yaml(text: str) -> dict[str, Any]:
    """The fields in a text; `ValueError` says what is wrong and in which line."""
    try:
        found = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise ValueError(f"{error.problem or error.context}{line}") from error
    except yaml.YAMLError as error:
        raise ValueError(str(error).splitlines()[0]) from error
    if isinstance(found, dict):
        return found
    raise ValueError("it holds no fields, as in player: ppo")

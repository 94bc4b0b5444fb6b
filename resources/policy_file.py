"""Reads a policy from its YAML file. Every mistake is reported with file, line and remedy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from policies.catalogue import Catalogue
from policies.errors import DefinitionError
from policies.policy import Policy, check_against


def read_policy(path: Path, catalogue: Catalogue) -> Policy:
    """The policy that the file holds now, checked against the catalogue it governs. Its `hash` names its content.

    Raises:
        DefinitionError: the file cannot be read, or something in it is wrong.
    """
    root, document = _parsed(path)
    try:
        policy = Policy.load(document, str(path))
        check_against(policy, catalogue, str(path))
    except DefinitionError as error:
        raise DefinitionError(_with_lines(str(error), str(path), root)) from None
    return policy


class _Loader(yaml.SafeLoader):
    """Safe YAML without what hides rules from a reader: repeated keys and aliases."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases are not followed; write the value out",
                problem_mark=self.peek_event().start_mark,  # type: ignore[no-untyped-call]
            )
        return super().compose_node(parent, index)


def _parsed(path: Path) -> tuple[yaml.Node | None, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DefinitionError(f"{path}: no such file; a relative path starts beside the request class") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path}: it must be a readable UTF-8 text file ({type(error).__name__})") from None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return None, None
        _refuse_repeated_keys(root)
        return root, loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DefinitionError(f"{path}{line}: {error.problem or error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DefinitionError(f"{path}: this is no YAML document: {error}") from None


def _refuse_repeated_keys(node: yaml.Node) -> None:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeated_keys(item)
    elif isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                problem = f"key {name!r} stands here and in line {seen[name]}; keep one of them"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen[name] = key.start_mark.line + 1
            _refuse_repeated_keys(value)


def _with_lines(message: str, where: str, root: yaml.Node | None) -> str:
    """Every line of the message that starts with `where: path` gets the line number of that path."""
    lines = []
    for line in message.split("\n"):
        place = re.match(r": ([\w.\[\]-]+)", line.removeprefix(where)) if line.startswith(where) else None
        number = _line_of(place[1], root) if place and root else None
        lines.append(line if number is None else f"{where}:{number}{line.removeprefix(where)}")
    return "\n".join(lines)


def _line_of(path: str, root: yaml.Node) -> int | None:
    """The line of the deepest node on `path` that the file has; None where not even its first part is there.

    Keys may hold dots themselves (`limits.order.refund`), so the longest key that fits is taken.
    """
    node, rest, line = root, path, None
    while rest:
        step = re.match(r"\[(\d+)\]\.?", rest)
        if step and isinstance(node, yaml.SequenceNode) and int(step[1]) < len(node.value):
            node, rest = node.value[int(step[1])], rest[step.end() :]
            line = node.start_mark.line + 1
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        fitting = [pair for pair in pairs if re.match(re.escape(str(pair[0].value)) + r"(?![\w-])", rest)]
        if not fitting:
            return line
        key, node = max(fitting, key=lambda pair: len(str(pair[0].value)))
        rest = rest[len(str(key.value)) :].removeprefix(".")
        line = key.start_mark.line + 1
    return line

"""The parts of expressions, and `Once` nodes in an order in which they can be computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from calibayes.export.expressions import (
    READ_FROM_TABLE,
    Condition,
    Expression,
    IsMissing,
    Node,
    Once,
    TextColumn,
)


def parts_of(node: Node) -> Iterator[Node]:
    """The nodes that are fields of a node."""
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Expression | Condition))
        elif isinstance(value, Expression | Condition | TextColumn):
            yield value


def is_read_from_table(node: Node) -> bool:
    """Whether a node reads a cell of the table."""
    is_text = isinstance(node, IsMissing) and isinstance(node.value, TextColumn)
    return is_text or isinstance(node, READ_FROM_TABLE)


def cells_within(node: Node) -> Iterator[Node]:
    """The nodes that read cells of the table in a node, itself included, but not inside of `Once`."""
    pending = [node]
    while pending:
        part = pending.pop()
        if is_read_from_table(part):
            yield part
        elif not isinstance(part, Once):
            pending.extend(parts_of(part))


def once_within(node: Node, kinds: tuple[type, ...] = (Once,)) -> Iterator[Any]:
    """The outermost `Once` nodes, or nodes of other kinds, inside of a node, each as often as it occurs."""
    pending = list(parts_of(node))
    while pending:
        part = pending.pop()
        if isinstance(part, kinds):
            yield part
        else:
            pending.extend(parts_of(part))


def once_in_order(nodes: Sequence[Node], kinds: tuple[type, ...] = (Once,)) -> list[list[Any]]:
    """All `Once` nodes, or nodes of other kinds, below some nodes, in layers: each depends on earlier layers only."""
    depths: dict[Any, int] = {}
    pending = [
        once for node in nodes for once in ([node] if isinstance(node, kinds) else once_within(node, kinds))
    ]
    while pending:
        once = pending[-1]
        inner = [] if once in depths else list(dict.fromkeys(once_within(once, kinds)))
        if unknown := [part for part in inner if part not in depths]:
            pending.extend(unknown)
            continue
        depths.setdefault(once, 1 + max((depths[part] for part in inner), default=-1))
        pending.pop()
    layers: list[list[Any]] = [[] for _ in range(1 + max(depths.values(), default=-1))]
    for once, depth in depths.items():
        layers[depth].append(once)
    return layers

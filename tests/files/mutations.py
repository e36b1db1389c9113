"""Random changes of a model file's document and tensors. Each changes parts in place, drawing from a generator."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from calibayes.files.container import TYPES
from calibayes.files.registry import ESTIMATORS, FOREIGN, FUNCTIONS, VALUES
from tests.files.forging import Parts

EXTREMES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, -(2**63), 10**300),
    *(0.0, -0.0, 0.5, -1.5, 1e-320, 1e308, -1e308),
    *("", "x", "0", "auto", "rc", "\ud800", "a" * 1000, "nan"),
    *([], {}, [[]], [0], ["x"], [None, None], {"x": 0}, {"x": {}}),
    *({"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, {"$decimal": "1e999"}),
    *({"$list": []}, {"$list": [0, 1]}, {"$range": [0, 3, 1]}, {"$range": [0, 5_000_000, 1]}),
    *({"$slice": [None, None, None]}, {"$bytes": "00"}, {"$date": "0001-01-01"}, {"$same": 0}),
    *({"$pairs": [[0, 1]]}, {"$pairs": []}, {"$library": "POLARS"}, {"$library": "PYARROW"}),
    *({"$array": [], "type": "<f8"}, {"$array": [], "type": "<f8", "shape": [3, 0]}),
    *({"$array": ["a", "b"], "type": "<U1"}, {"$array": [None, {}], "type": "|O"}),
    *(
        {"$scalar": 1.5, "type": "<f4"},
        {"$scalar": 0, "type": "<M8[s]"},
        {"$dtype": "|O"},
        {"$dtype": "<M8[ns]"},
    ),
    *({"$scikit_learn": "KFold"}, {"$scikit_learn": "LedoitWolf"}),
)
NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 1e300, -1e300, 1e-300, 2.0**62, -(2.0**62), 255.0)
NAMES = {"$type": VALUES, "$estimator": ESTIMATORS, "$function": FUNCTIONS, "$scikit_learn": FOREIGN}


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """All places of a JSON value: the list or object, and the position or key."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from places(node[key])


def pick(values: Any, rng: np.random.Generator) -> Any:
    values = list(values)
    return values[rng.integers(len(values))]


def model_place(parts: Parts, rng: np.random.Generator) -> tuple[Any, Any]:
    """A place in the model; parameters, of which there are many, are chosen less often."""
    node = (
        parts.document
        if rng.random() < 0.02
        else parts.model["attributes"]
        if rng.random() < 0.9
        else parts.model
    )
    return pick(places(node), rng)  # type: ignore[no-any-return]


def replace_value(parts: Parts, rng: np.random.Generator) -> None:
    node, key = model_place(parts, rng)
    node[key] = pick(EXTREMES, rng)


def change_number(parts: Parts, rng: np.random.Generator) -> None:
    numbers = [(n, k) for n, k in places(parts.model) if type(n[k]) in (int, float)]
    if numbers:
        node, key = pick(numbers, rng)
        node[key] = pick((node[key] + 1, node[key] - 1, -node[key], node[key] * 1000, float(node[key])), rng)


def delete(parts: Parts, rng: np.random.Generator) -> None:
    node, key = model_place(parts, rng)
    del node[key]


def duplicate(parts: Parts, rng: np.random.Generator) -> None:
    node, key = model_place(parts, rng)
    if isinstance(node, list):
        node.insert(key, node[key])
    else:
        node[str(pick(("x", "$id", "$same", key + "_"), rng))] = node[key]


def rename_key(parts: Parts, rng: np.random.Generator) -> None:
    objects = [(n, k) for n, k in places(parts.model) if isinstance(n, dict)]
    node, key = pick(objects, rng)
    node[pick(objects, rng)[1]] = node.pop(key)


def copy_subdocument(parts: Parts, rng: np.random.Generator) -> None:
    (node, key), (other, there) = model_place(parts, rng), model_place(parts, rng)
    node[key] = Parts(other[there], {}).copy().document


def swap_subdocuments(parts: Parts, rng: np.random.Generator) -> None:
    copy = parts.copy().model["attributes"]
    here, there = list(places(parts.model["attributes"])), list(places(copy))
    first, second = rng.integers(len(here), size=2)
    for target, source in ((first, second), (second, first)):
        node, key = here[target]
        other, at = there[source]
        if (isinstance(node, dict) and key in node) or (isinstance(node, list) and key < len(node)):
            node[key] = other[at]


def rename_class(parts: Parts, rng: np.random.Generator) -> None:
    node, tag = pick([(n, k) for n, k in places(parts.document) if k in NAMES], rng)
    node[tag] = pick(NAMES[tag], rng)


def shuffle_list(parts: Parts, rng: np.random.Generator) -> None:
    lists = [n[k] for n, k in places(parts.model) if isinstance(n[k], list) and len(n[k]) > 1]
    if lists:
        rng.shuffle(pick(lists, rng))


def tensor(parts: Parts, rng: np.random.Generator) -> str:
    return str(pick(parts.tensors, rng))


def change_entries(parts: Parts, rng: np.random.Generator) -> None:
    """Set some or all entries of a tensor to an extreme number."""
    array = parts.tensors[tensor(parts, rng)].reshape(-1)
    chosen = slice(None) if rng.random() < 0.2 else rng.integers(array.size, size=1 + rng.integers(2))
    with np.errstate(invalid="ignore", over="ignore"):
        array[chosen] = np.array(pick(NUMBERS, rng)).astype(array.dtype)


def permute_entries(parts: Parts, rng: np.random.Generator) -> None:
    rng.shuffle(parts.tensors[tensor(parts, rng)].reshape(-1))


def reverse_entries(parts: Parts, rng: np.random.Generator) -> None:
    name = tensor(parts, rng)
    parts.tensors[name] = (
        parts.tensors[name][..., ::-1].copy() if parts.tensors[name].ndim else parts.tensors[name]
    )


def change_dtype(parts: Parts, rng: np.random.Generator) -> None:
    """Entries of another type, or the same bytes as another type."""
    name, dtype = tensor(parts, rng), pick(TYPES.values(), rng)
    array = parts.tensors[name]
    if rng.random() < 0.5 and array.ndim and array.shape[-1] * array.itemsize % dtype.itemsize == 0:
        parts.tensors[name] = array.view(dtype)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            parts.tensors[name] = array.astype(dtype)


def change_shape(parts: Parts, rng: np.random.Generator) -> None:
    name = tensor(parts, rng)
    array = parts.tensors[name]
    shapes: list[Any] = [
        array.reshape(-1),
        array.reshape(1, -1),
        array.T.copy(),
        array[None],
        array.reshape(-1)[:1],
    ]
    shapes += [np.concatenate([array, array])] if array.ndim else []
    shapes += [array[:-1].copy()] if array.ndim and len(array) > 1 else []
    parts.tensors[name] = np.ascontiguousarray(pick(shapes, rng))


def swap_tensors(parts: Parts, rng: np.random.Generator) -> None:
    first, second = tensor(parts, rng), tensor(parts, rng)
    parts.tensors[first], parts.tensors[second] = parts.tensors[second], parts.tensors[first]


Mutation = Callable[[Parts, np.random.Generator], None]
MUTATIONS: tuple[Mutation, ...] = (
    *(replace_value, replace_value, change_number, delete, duplicate, rename_key, copy_subdocument),
    *(swap_subdocuments, rename_class, shuffle_list, change_entries, change_entries, change_entries),
    *(permute_entries, reverse_entries, change_dtype, change_shape, swap_tensors),
)

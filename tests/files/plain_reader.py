"""Predicts from files of GaussianNB, CategoricalNB, BernoulliNB and MultinomialNB, with NumPy alone."""

import hashlib
import json

import numpy as np


def read(path):
    content, arrays = np.fromfile(path, "u1").tobytes(), {}
    end = 8 + int.from_bytes(content[:8], "little")
    header, tensors = json.loads(content[8:end]), content[end:]
    metadata, zeroed = header.pop("__metadata__"), content[8:42] + b"0" * 64 + content[106:end]
    for name, part in (("header_sha256", zeroed), ("tensors_sha256", tensors)):
        assert hashlib.sha256(part).hexdigest() == metadata[name], f"{path} is damaged: {name} is wrong"
    for name, entry in header.items():
        dtype = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "BOOL": "?"}[entry["dtype"]]
        array = np.frombuffer(tensors[slice(*entry["data_offsets"])], dtype).reshape(entry["shape"])
        arrays[name, None], arrays[name, True] = array, array.T
    hook = {"object_hook": lambda n: n.get("$array", arrays.get((n.get("$tensor"), n.get("transposed")), n))}
    return json.loads(metadata["document"], **hook)["model"]["attributes"]["fitted_"]


def predict_proba(fitted, rows):  # what read returns, and lists of cells; None and NaN are missing values
    family, encoder = fitted["model"]["families"]["columns"], fitted["binding"]["encoders"]["columns"]
    p, cells = fitted["parameters"]["columns"], [[row[j] for j in encoder["indices"]] for row in rows]
    if family["$type"] == "Categorical":
        tables = np.split(p["log_probability"].T, np.cumsum(family["layout"]["levels"])[:-1])
        levels = [list(u if len(u) == len(t) else range(len(t))) for u, t in zip(encoder["unpooled"], tables)]  # noqa: B905
        terms = [[t[v.index(c)] if c in v else 0 * t[0] for t, v, c in zip(tables, levels, r)] for r in cells]  # noqa: B905
    else:
        x, limit = np.array(cells, dtype=float)[:, :, None], encoder.get("threshold") or 0
        terms = {
            "Gaussian": lambda: -0.5 * (np.log(p["variance"].T) + (x - p["mean"].T) ** 2 / p["variance"].T),
            "Bernoulli": lambda: np.where(x > limit, p["log_one"].T, p["log_zero"].T) + 0 * x,
            "Multinomial": lambda: x * p["log_probability"].T,
        }[family["$type"]]()
    log_joint = fitted["parameters"]["class_prior"]["log_probability"] + np.nansum(terms, axis=1)
    scores = np.exp((log_joint - log_joint.max(axis=1, keepdims=True)) / fitted["temperature"])
    return scores / scores.sum(axis=1, keepdims=True)

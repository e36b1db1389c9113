"""Random changes of a checkpoint, with right checksums: `fit` refuses the file, or trains to valid probabilities."""

import contextlib

import numpy as np
import pytest

from calibayes import GaussianNB, TrainingOptions
from tests.estimators.generative.checkpoint_cases import overlapping
from tests.files.forging import Parts, put_together, taken_apart
from tests.files.mutations import MUTATIONS, pick
from tests.seeds import SEED

CASES = 120


def changed(content, case):
    """The file of a case."""
    parts, rng = taken_apart(content), np.random.default_rng([SEED, case])
    checkpoint = parts.document["checkpoint"]
    model = Parts({"model": {"attributes": checkpoint}}, parts.tensors)
    for _ in range(1 + int(rng.integers(2))):
        with contextlib.suppress(TypeError, KeyError, AttributeError, IndexError, ValueError):
            pick(MUTATIONS, rng)(model, rng)
    parts.document["checkpoint"] = model.document["model"].get("attributes")
    return put_together(Parts(parts.document, model.tensors))


def interrupt(progress):
    if progress.update == 2:
        raise KeyboardInterrupt


def fit(path, **options):
    training = TrainingOptions(checkpoint=path, **options)
    return GaussianNB(max_iter=4, stop=None, random_state=0, training=training).fit(*overlapping())


@pytest.mark.filterwarnings("ignore")  # of changed numbers
@pytest.mark.parametrize("options", [{}, {"batch_size": 60}], ids=["all rows", "mini-batches"])
def test_random_changes_are_refused_or_train(options, tmp_path):
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        fit(path, callbacks=[interrupt], **options)
    content, refused = path.read_bytes(), 0
    for case in range(CASES):
        path.write_bytes(changed(content, case))
        try:
            model = fit(path, **options)
        except ValueError as error:
            if "cannot be continued" not in str(error):
                raise AssertionError(f"case {case} of seed {SEED}") from error
            refused += 1
        else:
            assert np.allclose(model.predict_proba(overlapping()[0]).sum(axis=1), 1), f"case {case}"
    assert CASES / 2 < refused < CASES

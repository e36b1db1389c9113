"""Methods of estimators that other modules of the package call: they are not part of the public interface.

Modules do not use private names of each other, so that these names have no underscore. The reference leaves them out.
"""

from __future__ import annotations

from typing import Any

INTERNAL = frozenset(
    [
        *(
            "candidate_pairs",
            "check",
            "choices",
            "chosen_encoder",
            "class_prior_for",
            "class_priors",
            "completed",
        ),
        *("default_bins", "describe", "family_parameters", "given", "given_columns", "growth", "holding"),
        *(
            "joint_columns",
            "joint_family",
            "learned_family",
            "leave_one_out",
            "levels_encoder",
            "linear_loss",
        ),
        *("marginals", "over_columns", "recipe", "refuse_checkpoint", "refuse_parts_of_rows", "regularizer"),
        *("require_sums", "settings", "smoothing", "specifications", "specify", "unknown_cells", "verify"),
    ]
)


def is_internal(member: Any) -> bool:
    """Whether a member of a class is one of these methods of an estimator, or of the options of its training."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    return module.startswith("calibayes.estimators.") and name in INTERNAL


def skip_internal(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave internal methods out of a page; None leaves the decision to others."""
    return True if is_internal(member) else None


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-skip-member", skip_internal)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

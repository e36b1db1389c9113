"""Members of estimators that other modules of the package use: they are not part of the public interface.

Modules do not use private names of each other, so that these names have no underscore. The reference leaves them out.
"""

from __future__ import annotations

from importlib import import_module

INTERNAL = (
    *("allows_lost_classes", "always_fitted", "candidate_pairs", "check", "choices", "chosen_encoder"),
    *("class_prior_for", "class_priors", "completed", "default_bins", "default_start", "describe"),
    *(
        "family_name",
        "family_parameters",
        "fewest_classes",
        "further_fitted",
        "given",
        "given_columns",
        "growth",
    ),
    *("holding", "is_tempered_if_wide", "joint_columns", "joint_family", "learned_family", "leave_one_out"),
    *(
        "levels_encoder",
        "linear_loss",
        "marginals",
        "members",
        "numeric_kind",
        "over_columns",
        "reads_sparse",
    ),
    *("recipe", "refuse_checkpoint", "refuse_parts_of_rows", "regularizer", "require_sums", "runs_on_device"),
    *("settings", "smoothing", "specifications", "specify", "unknown_cells", "verify"),
)


def internal_members(full_name: str) -> list[str]:
    """The members of a class, such as "calibayes.NaiveBayes", that its page does not show; none if it is no estimator."""
    module, _, name = full_name.rpartition(".")
    thing = getattr(import_module(module), name)
    return [member for member in INTERNAL if hasattr(thing, member)] if hasattr(thing, "get_params") else []

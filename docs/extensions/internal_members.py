"""Members of estimators that other modules of the package use: they are not part of the public interface.

Modules do not use private names of each other, so that these names have no underscore. The reference leaves them out.
"""

from __future__ import annotations

from importlib import import_module

INTERNAL = ("check", "marginals", "refuse_checkpoint", "verify")


def internal_members(full_name: str) -> list[str]:
    """The members of a class, such as "calibayes.NaiveBayes", that its page does not show; none if it is no estimator."""
    module, _, name = full_name.rpartition(".")
    thing = getattr(import_module(module), name)
    return [member for member in INTERNAL if hasattr(thing, member)] if hasattr(thing, "get_params") else []

"""The layout of a family before `bind`."""

from calibayes.core.protocols import Layout

UNBOUND = Layout((), ())
"""No classes and no columns: the default layout of every family."""

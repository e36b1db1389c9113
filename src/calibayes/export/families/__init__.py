"""Log densities of families as expressions, one module for each kind of family.

`log_densities` is a generic function (`functools.singledispatch`). The modules register an implementation for each type of
family with ``@log_densities.register``. It returns log p(x | class) of each class as an expression
(`calibayes.export.expressions`); terms that all classes share may be left out.
"""

from calibayes.export.families import counts, gaussian, kernel, mixture, tree
from calibayes.export.families.log_density import log_densities

__all__ = ["counts", "gaussian", "kernel", "log_densities", "mixture", "tree"]

"""Log densities of families as expressions, one module for each kind of family.

`log_densities` is a function of the type of the family: a module registers its families with
``@log_densities.register``, and states log p(x | class) of each class in the language of `calibayes.export.expressions`.
Terms that all classes share may be left out.
"""

from calibayes.export.families import counts, gaussian, kernel, mixture, tree
from calibayes.export.families.log_density import log_densities

__all__ = ["counts", "gaussian", "kernel", "log_densities", "mixture", "tree"]

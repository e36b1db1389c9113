"""The public strategy for tables; hypothesis is imported when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibayes.testing.random_tables.labeled_table import LabeledTable

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def tables(
    *,
    libraries: Sequence[str] | None = None,
    themes: Sequence[str] | None = None,
    max_rows: int = 24,
    max_columns: int = 5,
    missing: bool = True,
) -> SearchStrategy[LabeledTable]:
    """A hypothesis strategy for small tables with labels, many of them unusual, and new rows of the same columns.

    Columns are numbers, counts, integers, flags, text or categories; constant ones, ones with as many levels as rows,
    with missing cells, with numbers whose squares overflow, denormals, infinities, integers of 64 bits. There may be as
    few as two rows, one row for each class, or one class only. The new rows may have levels that the training rows do
    not have.

    Parameters
    ----------
    libraries : sequence of "numpy", "pandas", "polars", optional
        By default those that are installed. NumPy arrays have several types, orders and strides.
    themes : sequence of str, optional
        Kinds of columns that a table may have: "numbers", "counts", "flags", "levels", "extremes", "everything"; by
        default one of them is drawn for each table.
    max_rows, max_columns : int
        Largest number of training rows (2 or more) and of columns.
    missing : bool
        Whether cells may be missing.

    Returns
    -------
    SearchStrategy of LabeledTable

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from calibayes import NaiveBayes
    >>> from calibayes.testing import assert_posterior_or_clear_error, tables
    >>> @settings(max_examples=3, deadline=None)
    ... @given(tables(themes=["levels"]))
    ... def test_naive_bayes(table):
    ...     assert_posterior_or_clear_error(NaiveBayes(rule="ml"), table)
    >>> test_naive_bayes()
    """
    try:
        import hypothesis  # noqa: F401
    except ImportError as error:
        raise ImportError("calibayes.testing.tables needs hypothesis: pip install hypothesis") from error
    from calibayes.testing.random_tables.columns import THEMES
    from calibayes.testing.random_tables.containers import LIBRARIES, installed_libraries
    from calibayes.testing.random_tables.strategy import labeled_tables

    if max_rows < 2 or max_columns < 1:
        raise ValueError(
            f"a table needs 2 rows and 1 column, got max_rows={max_rows}, max_columns={max_columns}"
        )
    return labeled_tables(
        _chosen("libraries", libraries, LIBRARIES, installed_libraries()),
        _chosen("themes", themes, tuple(THEMES), tuple(THEMES)),
        max_rows,
        max_columns,
        missing,
    )


def _chosen(
    name: str, given: Sequence[str] | None, known: tuple[str, ...], default: tuple[str, ...]
) -> tuple[str, ...]:
    """The given names, or the default. Raises ValueError if one is unknown or there is none."""
    if given is None:
        return default
    unknown = [one for one in given if one not in known]
    if unknown or not given or isinstance(given, str):
        raise ValueError(f"{name} must be a list of names among {', '.join(known)}, got {given!r}")
    return tuple(given)

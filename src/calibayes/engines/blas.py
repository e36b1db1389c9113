"""BLAS held to one thread: blocks are the unit of parallel work, and sums must not depend on the number of threads."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any, cast

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> Any:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    return cast(AbstractContextManager[Any], _controller().limit(limits=1, user_api="blas"))

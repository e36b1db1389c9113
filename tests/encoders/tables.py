"""A table with complete, incomplete, empty and text columns, and an encoder fitted on it."""

import numpy as np
import pandas as pd

from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame

TABLE = pd.DataFrame(
    {
        "complete": [1.0, 2.0, 3.0, 2.0],
        "gappy": [0.5, np.nan, 0.5, 7.0],
        "empty": [np.nan] * 4,
        "text": ["a", "b", None, "b"],
    }
)


def fitted(encoder, table=TABLE):
    return encoder.fit(summary_of(read_frame(table), np.ones(len(table))), range(table.shape[1]))

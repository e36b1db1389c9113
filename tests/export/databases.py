"""Databases in which exported statements are run: DuckDB, SQLite, and PostgreSQL where its server is installed."""

import csv
import io
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa


def cells_of(column):
    """The cells of a column as Python values: half of the missing numbers are NaN, all other missing cells are None."""
    cells = [None if gap else cell for cell, gap in zip(column.tolist(), column.isna(), strict=True)]
    if column.dtype.kind != "f":
        return cells
    return [np.nan if cell is None and place % 2 else cell for place, cell in enumerate(cells)]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


# -- DuckDB --------------------------------------------------------------------------------------------------------


def arrow_table(frame):
    """A data frame as an Arrow table in which NaN and null differ."""
    columns = {}
    for name, column in frame.items():
        kind = None if column.dtype.kind not in "fmM" else pa.float64() if column.dtype.kind == "f" else None
        if column.dtype.kind in "mM":
            columns[str(name)] = pa.array(column, from_pandas=True)
        else:
            columns[str(name)] = pa.array(cells_of(column), type=kind, from_pandas=False)
    return pa.table(columns)


def run_duckdb(frame, statement, table="visits"):
    """The result of a statement over a table, (n, columns), and its column names."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        connection.register("given", arrow_table(frame))
        connection.execute(f"CREATE TABLE {quoted(table)} AS SELECT * FROM given")
        result = connection.execute(statement)
        names = [column[0] for column in result.description]
        return np.array(result.fetchall(), dtype=float), names


# -- SQLite --------------------------------------------------------------------------------------------------------


def run_sqlite(frame, statement, table="visits"):
    with sqlite3.connect(":memory:") as connection:
        names = ", ".join(quoted(str(name)) for name in frame.columns)
        connection.execute(f"CREATE TABLE {quoted(table)} ({names})")
        places = ", ".join("?" for _ in frame.columns)
        rows = zip(*(cells_of(column) for _, column in frame.items()), strict=True)
        connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({places})", rows)
        result = connection.execute(statement).fetchall()
    return np.array(result, dtype=float)


def sqlite_has_functions():
    try:
        sqlite3.connect(":memory:").execute("SELECT exp(1.0), ln(1.0), floor(1.5), sqrt(2.0)")
    except sqlite3.OperationalError:
        return False
    return True


# -- PostgreSQL ----------------------------------------------------------------------------------------------------

TYPES = {"f": "double precision", "i": "bigint", "b": "boolean", "m": "interval"}


def server_folder():
    """The folder of PostgreSQL's programs, or None."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return Path(found).resolve().parent if found else folders[-1].parent if folders else None


def server_user():
    """The user that runs a private server: not the administrator, whom PostgreSQL refuses; None if there is none."""
    if os.geteuid() != 0:
        return os.geteuid()
    return next((entry.pw_uid for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody")), None)


@contextmanager
def postgres():
    """A function that runs a script in a private server, which listens in a temporary folder alone."""
    programs, user = server_folder(), server_user()
    with tempfile.TemporaryDirectory(prefix="calibayes-postgres-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            os.chown(folder, user, -1)
        data = Path(folder) / "data"

        def run(program, *arguments, text=None):
            return subprocess.run(
                [programs / program, *arguments],
                user=user if os.geteuid() == 0 else None,
                cwd=folder,
                input=text,
                text=True,
                check=True,
                capture_output=True,
                env={**os.environ, "LC_ALL": "C.UTF-8", "PGOPTIONS": "", "HOME": folder},
            ).stdout

        run("initdb", "-D", str(data), "-U", "tester", "-A", "trust", "-N", "-E", "UTF8")
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
        subprocess_log = str(Path(folder) / "log")
        run("pg_ctl", "-D", str(data), "-o", options, "-l", subprocess_log, "-w", "start")
        try:
            common = ("-h", folder, "-U", "tester", "-d", "postgres", "-X", "-q", "-v", "ON_ERROR_STOP=1")
            yield lambda script: run("psql", *common, "-f", "-", text=script)
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")


def run_postgres(run, frame, statement, table="visits"):
    columns = ", ".join(f"{quoted(str(name))} {_type(column)}" for name, column in frame.items())
    script = [
        f"DROP TABLE IF EXISTS {quoted(table)};",
        f"CREATE TABLE {quoted(table)} ({columns});",
        f"COPY {quoted(table)} FROM STDIN WITH (FORMAT csv, NULL '\\N');",
        *_csv_lines(frame),
        "\\.",
        f"COPY ({statement}) TO STDOUT WITH (FORMAT csv, NULL 'nan');",
    ]
    output = run("\n".join(script) + "\n")
    return np.array([[float(cell) for cell in row] for row in csv.reader(io.StringIO(output))])


def _type(column):
    if column.dtype.kind == "M":
        return "timestamptz" if getattr(column.dtype, "tz", None) else "timestamp"
    kinds = {type(cell) for cell in column.dropna()}
    return "boolean" if kinds == {bool} else TYPES.get(column.dtype.kind, "text")


def _csv_lines(frame):
    rows = zip(*(map(_csv_cell, cells_of(column)) for _, column in frame.items()), strict=True)
    return [",".join(row) for row in rows]


def _csv_cell(cell):
    if cell is None:
        return "\\N"
    if isinstance(cell, pd.Timedelta):
        return f"{cell.total_seconds()} seconds"
    return f'"{cell}"' if not isinstance(cell, str) else '"' + cell.replace('"', '""') + '"'

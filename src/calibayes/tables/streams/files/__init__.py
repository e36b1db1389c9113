"""Files that rows are read from: Parquet, Arrow IPC, CSV and datasets of pyarrow."""

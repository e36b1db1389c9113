"""Tables of mixed columns (from arrays, data frames and files), and sources that yield encoded rows in blocks."""

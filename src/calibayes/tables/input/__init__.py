"""Tables that are read once, block by block, from a file or from standard input, with the columns that a model expects."""

"""Unknown cells of rows: the values that they may have, and the joint density with each."""

"""Tables as people have them (arrays, data frames, files), and sources that hand out encoded rows in blocks."""

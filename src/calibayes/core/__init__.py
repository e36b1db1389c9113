"""Protocols (the design on one page), optional abilities, blocks of rows, arithmetic on named arrays."""

"""What a cell of a table computes: everything here is part of the name under which a result is kept."""

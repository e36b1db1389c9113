"""The HTML of the page: elements whose text is always escaped, style sheet, script and document."""

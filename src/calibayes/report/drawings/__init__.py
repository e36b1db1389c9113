"""Pictures as inline SVG in the colors of the page, each with a title and a description for screen readers."""

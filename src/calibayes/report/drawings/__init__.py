"""Pictures as inline SVG: they follow the page's colors and have a title and a description for screen readers."""

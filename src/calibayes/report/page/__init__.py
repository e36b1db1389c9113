"""HTML whose text is escaped by construction, and the frame of the page: style, script, document."""

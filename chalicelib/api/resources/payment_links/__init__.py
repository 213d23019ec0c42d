"""Payment links: the endpoints of their merchant, and the public page."""

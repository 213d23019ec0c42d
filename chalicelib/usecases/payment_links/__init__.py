"""Payment links: made by a merchant, opened by visitors of their public page."""

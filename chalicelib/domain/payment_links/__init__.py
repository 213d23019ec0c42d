"""Payment links: what a public page offers, and the pieces of it that are left."""

"""Our own transactions: attempts, replacements, sightings, silent nodes, given-up transactions."""

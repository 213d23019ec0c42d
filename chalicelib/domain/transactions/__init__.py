"""Our own transactions: attempts, replacements, sightings, nodes that are silent, what was given up."""

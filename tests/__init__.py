"""A package, and not only a folder: bitcoinlib installs a package of the same name, which would win otherwise."""

"""What the service does, one module per capability. Reaches the outside only through the Protocols in `ports`."""

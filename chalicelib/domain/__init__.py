"""Pure rules and types. Imports no SDK, does no I/O, and nothing else of the project."""

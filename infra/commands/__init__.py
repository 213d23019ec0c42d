"""The operator's commands in groups. Each module has `add`, which adds its commands to the command line (infra/cli.py)."""

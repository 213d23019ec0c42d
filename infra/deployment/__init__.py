"""Deploying a stage: the bucket for deployments, the stack, what Chalice makes. Commands are in infra/commands/deploying.py."""

"""Recovery: after tables were lost, or restored to an earlier second."""

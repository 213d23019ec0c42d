"""Recovery after the tables were lost, or restored to an earlier second."""

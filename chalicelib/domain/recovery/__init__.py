"""Progress records of recovery, after tables were lost or restored."""

"""Old payments leave the tables for the archive."""

"""What is remembered while lost or restored tables are brought up to date."""

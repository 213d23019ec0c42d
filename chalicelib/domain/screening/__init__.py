"""What makes a payment suspicious, and the grey list."""

"""What all transactions of ours have in common, whatever they pay."""

"""Networks and coins as the operator changes them, the URLs of nodes, and exchange rates."""

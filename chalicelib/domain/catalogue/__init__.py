"""Networks and coins: fixed facts, settings, rates."""

"""The engine of outgoing transactions on account networks: payouts, moves and stakes are kinds of them."""

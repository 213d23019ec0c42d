"""The one outgoing transaction: the steps that payouts, moves and stakes share."""

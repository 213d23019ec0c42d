"""Webhook requests to hosts that strangers named: the only connections to addresses that the operator did not choose."""

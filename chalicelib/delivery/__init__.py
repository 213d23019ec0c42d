"""Sending webhooks to hosts that strangers named: the one place that connects to addresses which are not the operator's choice."""

"""The sandbox: simulated networks that developers control, and the demo."""

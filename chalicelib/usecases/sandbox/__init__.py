"""The sandbox: simulated networks that developers move, and the demo."""

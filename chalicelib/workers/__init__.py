"""Entry points of schedules and queue messages. Thin: each finds its use case and calls it. Imported when called."""

"""What a clock or a queue message starts. Thin: find the use case, call it. Imported when called."""

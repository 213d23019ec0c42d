"""The local stack: AWS inside the process, an HTTP front, and what AWS does by itself. Never imported by a Lambda."""

"""`python -m infra.local.tron --port 0 --block-seconds 2`: run the node until its process is ended."""

from __future__ import annotations

import argparse
import contextlib
import sys

from infra.local.tron.server import Server


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.local.tron", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of 127.0.0.1; 0 takes a free one")
    parser.add_argument("--block-seconds", type=float, default=0, help="mine that often; 0 mines only when asked")
    options = parser.parse_args()
    server = Server(options.port, options.block_seconds)
    # Not on standard output, which whoever keeps the node has closed by now.
    print(server.url, file=sys.stderr, flush=True)
    server.start()
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()

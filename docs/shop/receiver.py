"""Prints each event once that a webhook brings, and refuses what the service did not send.

PORT=9000 WEBHOOK_SECRET=whsec_... python docs/shop/receiver.py
"""

import base64
import hmac
import http.server
import json
import os
import time

SECRET = os.environ["WEBHOOK_SECRET"].encode()
KEY = base64.b64decode(SECRET[6:] + b"==") if SECRET.startswith(b"whsec_") else SECRET
handled = set()


class Receiver(http.server.BaseHTTPRequestHandler):
    def header(self, name):
        return self.headers.get(name, "").encode()

    def do_POST(self):
        body = self.rfile.read(int(self.header("content-length") or 0))
        id, at = self.header("webhook-id"), self.header("webhook-timestamp")
        published = b"sha256=" + hmac.digest(SECRET, body, "sha256").hex().encode()
        standard = b"v1," + base64.b64encode(hmac.digest(KEY, id + b"." + at + b"." + body, "sha256"))
        sent = [self.header("x-gateway-signature"), self.header("x-gateway-signature-previous")]
        sent += self.header("webhook-signature").split()
        genuine = all(any(hmac.compare_digest(mine, one) for one in sent) for mine in (published, standard))
        if genuine := genuine and abs(time.time() - int(at)) <= 300:
            if id not in handled:
                line = f"{json.loads(body)['event']} {id.decode()}\n"  # one write: another thread may print too
                print(line, end="", flush=True)  # what the event asks for
            handled.add(id)
        self.send_response(204 if genuine else 401)
        self.end_headers()


http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()

"""A server that is idle most of the time.  Prints its port; ends when asked to."""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/nap":
            time.sleep(0.05)  #: nap
        self.send_response(200)
        self.end_headers()
        if self.path == "/end":
            threading.Thread(target=self.server.shutdown).start()

    def log_message(self, *words):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever(0.1)  #: serve

"""A web application for a server that forks its workers (gunicorn); ends the server when asked."""

import os
import signal

from tree import child_work


def application(environ, start_response):
    if environ["PATH_INFO"] == "/end":
        os.kill(os.getppid(), signal.SIGTERM)
    else:
        child_work()
    start_response("200 OK", [("Content-Length", "4")])
    return [b"done"]

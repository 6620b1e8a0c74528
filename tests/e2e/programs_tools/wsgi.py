import work


def application(environ, start_response):
    body = work.crunch(environ["PATH_INFO"][1:]).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]

"""A proxy in front of an API server that breaks what a test selects: connections, answers, watches.

The client speaks plain HTTP to it; it speaks TLS to the server, as the admin. No fault happens at random or after a time: a fault waits for
the requests for which it is meant.
"""
import contextlib
import http.client
import http.server
import json
import re
import socket
import socketserver
import threading

from program import LIMIT_S, wait_for


class Fault:
    """A fault for requests of this method whose path and query match the pattern; it happens `times` times (None: always)."""

    def __init__(self, method, pattern, times=1):
        self.method, self.pattern, self.times = method, re.compile(pattern), times

    def takes(self, method, path):
        if self.times == 0 or method != self.method or not self.pattern.search(path):
            return False
        self.times = None if self.times is None else self.times - 1
        return True

    def before(self, handler):
        """Acts before the request is sent to the server. Returns True if the request must not be sent."""
        return False

    def after(self, handler):
        """Acts when the server has answered. Returns True if the answer must not be passed on."""
        return False


class Refuse(Fault):
    """The proxy answers instead of the server, with the HTTP status, as a Status object."""

    def __init__(self, *words, status, reason='', retry_after=None, **more):
        super().__init__(*words, **more)
        self.status, self.reason, self.retry_after = status, reason, retry_after

    def before(self, handler):
        body = {'kind': 'Status', 'apiVersion': 'v1', 'code': self.status, 'reason': self.reason, 'message': f'the proxy says {self.status}'}
        headers = {} if self.retry_after is None else {'Retry-After': str(self.retry_after)}
        handler.give(self.status, json.dumps(body).encode(), headers)
        return True


class Cut(Fault):
    """The connection breaks before the request reaches the server."""

    def before(self, handler):
        handler.cut()
        return True


class Lose(Fault):
    """The server carries out the request, and the connection breaks before the answer arrives."""

    def after(self, handler):
        handler.cut()
        return True


class AskAgain(Fault):
    """The server carries out the request, and the answer asks to send it again, as that of an API server whose etcd failed meanwhile."""

    def after(self, handler):
        body = {'kind': 'Status', 'apiVersion': 'v1', 'code': 500, 'reason': 'ServerTimeout', 'details': {'retryAfterSeconds': 0},
                'message': 'The operation cannot be completed at this time, try again'}
        handler.give(500, json.dumps(body).encode(), {'Retry-After': '0'})
        return True


class Hold(Fault):
    """The request waits here until `release` is set; `held` is set when it has arrived."""

    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        self.release, self.held = threading.Event(), threading.Event()

    def before(self, handler):
        self.held.set()
        assert self.release.wait(LIMIT_S)
        return False


class End(Fault):
    """A watch gets only this event as its answer, and ends."""

    def __init__(self, *words, event, **more):
        super().__init__(*words, **more)
        self.event = event

    def before(self, handler):
        handler.give(200, json.dumps(self.event).encode() + b'\n', {})
        return True


class Handler(http.server.BaseHTTPRequestHandler):
    """A client's connection, with its own connection to the server."""

    protocol_version = 'HTTP/1.1'
    upstream = None

    def log_message(self, *_):
        pass

    def cut(self):
        self.close_connection = True

    def give(self, status, body, headers):
        self.send_response(status)
        for name, value in {'Content-Type': 'application/json', 'Content-Length': str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def ask(self, body):
        proxy = self.server.proxy
        if self.upstream is None:
            self.upstream = http.client.HTTPSConnection('127.0.0.1', proxy.cluster.port, context=proxy.cluster.tls, timeout=LIMIT_S)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ('host', 'connection', 'authorization')}
        self.upstream.request(self.command, self.path, body, headers)
        return self.upstream.getresponse()

    def stream(self, answer):
        """Passes on a watch piece by piece, until the client, the server or the test ends it."""
        self.send_response(answer.status)
        self.send_header('Content-Type', answer.getheader('Content-Type'))
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        self.server.proxy.watches.add(self)
        try:
            while piece := answer.read1(65536):
                self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
            self.wfile.write(b'0\r\n\r\n')
        finally:
            self.server.proxy.watches.discard(self)
            self.close_connection = True

    def serve(self):
        proxy = self.server.proxy
        length = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(length) or None
        if length > len(body or b''):
            self.cut()  # the client closed the connection within its request
            return
        if body and 'json' in self.headers.get('Content-Type', ''):
            proxy.bodies.append((self.command, self.path, json.loads(body)))
        fault = proxy.fault_for(self.command, self.path)
        if fault and fault.before(self):
            return
        try:
            answer = self.ask(body)
            if 'watch=true' in self.path and answer.status == 200:
                self.stream(answer)
                return
            content = answer.read()
            if not (fault and fault.after(self)):
                again = answer.getheader('Retry-After')
                self.give(answer.status, content, {'Content-Type': answer.getheader('Content-Type'), **({'Retry-After': again} if again else {})})
        except (OSError, http.client.HTTPException, ValueError):
            self.cut()  # the server, or the client, has closed the connection

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

    def finish(self):
        if self.upstream is not None:
            self.upstream.close()
        try:
            super().finish()
        except OSError:
            pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        """Reports nothing: tests close connections on purpose."""


class Proxy:
    """The proxy's server. `seen`: the requests as (method, path), in order; `bodies`: JSON that was sent, as (method, path, object); `faults`: faults
    that may still happen."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.lock = threading.Lock()
        self.seen, self.bodies, self.faults, self.watches = [], [], [], set()
        self.server = Server(('127.0.0.1', 0), Handler)
        self.server.proxy = self
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}'
        threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True).start()

    def fault_for(self, method, path):
        with self.lock:
            self.seen.append((method, path))
            return next((fault for fault in self.faults if fault.takes(method, path)), None)

    def add(self, fault):
        with self.lock:
            self.faults.append(fault)
        return fault

    def count(self, method, pattern):
        with self.lock:
            return sum(1 for m, path in self.seen if m == method and re.search(pattern, path))

    def cut_watches(self):
        """Breaks every open watch, as a network failure would."""
        wait_for(lambda: self.watches, 'a watch is under way')
        cut = set(self.watches)
        for handler in cut:
            for end in (handler.connection, handler.upstream.sock):
                with contextlib.suppress(OSError, AttributeError):  # it ended by itself
                    end.shutdown(socket.SHUT_RDWR)
        wait_for(lambda: not cut & self.watches, 'the watches are over')

    def close(self):
        for fault in self.faults:
            if isinstance(fault, Hold):
                fault.release.set()
        self.server.shutdown()
        self.server.server_close()

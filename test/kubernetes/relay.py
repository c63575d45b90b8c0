"""Stands in for a Service for the workers of a job: one address, whose coordinator can be exchanged."""
import contextlib
import selectors
import socket
import threading

PIECE = 1 << 16


class Relay:
    """Passes connections on to `target`, an address as a coordinator prints it; with None it closes them at once. `ended`: the number of connections
    to a target that have ended, or that could not be made."""

    def __init__(self):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.address = f'tcp:127.0.0.1:{self.listener.getsockname()[1]}'
        self.target, self.pairs, self.ended, self.closed = None, set(), 0, False
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.closed:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(near,), daemon=True).start()

    def serve(self, near):
        with near, contextlib.suppress(OSError):
            with self.lock:
                if self.target is None:
                    return
                host, port = self.target.removeprefix('tcp:').rsplit(':', 1)
            with socket.create_connection((host, int(port))) as far:
                with self.lock:
                    self.pairs.add((near, far))
                self.carry(near, far)
        with self.lock:
            self.pairs = {pair for pair in self.pairs if pair[0] is not near}
            self.ended += 1

    @staticmethod
    def carry(near, far):
        with selectors.DefaultSelector() as ready:
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            while True:
                for key, _ in ready.select():
                    piece = key.fileobj.recv(PIECE)
                    if not piece:
                        return
                    key.data.sendall(piece)

    def turn_to(self, target):
        """Changes the target and ends all open connections, as when the pod behind a Service is deleted."""
        with self.lock:
            self.target = target
            for pair in self.pairs:
                for end in pair:
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.closed = True
        self.turn_to(None)
        self.listener.close()

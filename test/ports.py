"""Finds a port for a test whose program needs one as an argument."""
import contextlib
import socket


@contextlib.contextmanager
def held_port():
    """Returns a port that the kernel gives to no other program: a socket that does not listen holds it, and the tested program can still listen
    there."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(('', 0))
        yield holder.getsockname()[1]

"""Serves files of a job as one tar archive, once: the program of the pod that `muster cp` makes on a cluster.

Arguments: TOKEN PATH MOUNT...; whoever asks for /TOKEN gets the archive, whose first entry is called `x`. What cannot be read is said in it, in a
header `MUSTER.error`: an archive that ends without one, and without its end mark, is torn.
"""
import http.server
import os
import socket
import socketserver
import sys
import tarfile
import threading

PORT, IDLE_S, ROOT = 8080, 120, 'x'
TOKEN, PATH, MOUNTS = sys.argv[1], sys.argv[2], sys.argv[3:]


class Refused(Exception):
    """What is asked for cannot be had; says why."""


class Filled:
    """A file of the size that its header says: what has become shorter meanwhile is filled up, and noted."""

    def __init__(self, file):
        self.file, self.is_short = file, False

    def read(self, count):
        data = self.file.read(count)
        self.is_short = self.is_short or len(data) < count
        return data.ljust(count, b'\0')


def is_below(path, folder):
    return os.path.commonpath([path, folder]) == folder


def find():
    """The path; a relative one in the first volume that has it, else below the working directory."""
    places = [os.path.join(folder, PATH) for folder in (*MOUNTS, os.getcwd())]
    found = next((os.path.normpath(place) for place in places if os.path.lexists(place)), None)
    volumes = ', '.join(MOUNTS)
    if not found:
        raise Refused('the volumes have no {} (they are at {})'.format(PATH, volumes))
    mounts = [os.path.normpath(mount) for mount in MOUNTS]
    folder = os.path.realpath(os.path.dirname(found))
    if found not in mounts and not any(is_below(folder, os.path.realpath(mount)) for mount in mounts):
        raise Refused('{} is in none of the volumes that outlive the pod ({}): what a container keeps elsewhere goes with it; kubectl cp copies from one '
                      'that runs'.format(found, volumes))
    return found


def add(archive, path, name):
    info = archive.gettarinfo(path, name)
    archive.inodes.clear()  # a file of two names is a file twice
    if info is None or not (info.isreg() or info.isdir() or info.issym()):
        return  # sockets, pipes and devices stay where they are
    if info.isreg():
        with open(path, 'rb') as file:
            filled = Filled(file)
            archive.addfile(info, filled)
        if filled.is_short:
            raise Refused('{} became shorter while it was read'.format(path))
        return
    archive.addfile(info)
    for entry in sorted(os.listdir(path)) if info.isdir() else ():
        add(archive, os.path.join(path, entry), name + '/' + entry)


def write(out):
    with tarfile.open(fileobj=out, mode='w|', format=tarfile.PAX_FORMAT, errors='surrogateescape') as archive:
        try:
            add(archive, find(), ROOT)
        except (OSError, Refused) as failure:
            if isinstance(failure, ConnectionError):
                raise
            info = tarfile.TarInfo('error')
            info.pax_headers = {'MUSTER.error': str(failure)}
            archive.addfile(info)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        served = self.path == '/' + TOKEN
        self.send_response(200 if served or self.path == '/ready' else 404)
        self.send_header('Content-Type', 'application/x-tar')
        self.end_headers()
        if served:
            self.server.idle.cancel()
            write(self.wfile)
            self.server.over.set()

    def log_message(self, *words):
        """Nothing: the token would be in it."""


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    address_family = socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET

    def server_bind(self):
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)  # HTTPServer's looks up a name, which may take seconds


def serve():
    try:
        server = Server(('', PORT), Handler)
    except OSError:  # a kernel without IPv6
        Server.address_family = socket.AF_INET
        server = Server(('', PORT), Handler)
    server.over = threading.Event()
    server.idle = threading.Timer(IDLE_S, server.over.set)
    server.idle.daemon = True
    server.idle.start()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.over.wait()


serve()

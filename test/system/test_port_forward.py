"""kubectl port-forward, unmodified, and the two protocols implemented by hand: SPDY/3.1 within a WebSocket, and
channels.

Needs kubectl; without it the tests that run it are skipped, with that reason.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import zlib

import pytest
from conftest import LIMIT_S, job, wait_for
from test_streams import Client, Cluster

pytestmark = pytest.mark.skipif(not shutil.which('kubectl'), reason='kubectl is not installed')

# A rank that serves on free ports, and writes their numbers into files: `echo` sends back what it reads; `greet` sends a line and closes;
# `deaf` reads nothing; `count` sends how many bytes arrived until the end of the file.
SERVER = r'''
import os, socket, sys, threading
def echo(c):
    while data := c.recv(1 << 16):
        c.sendall(data)
def greet(c):
    c.sendall(b'hello\n')
def deaf(c):
    held.append(c.dup())
def count(c):
    n = 0
    while data := c.recv(1 << 16):
        n += len(data)
    c.sendall(str(n).encode())
held = []
def serve(name, family, address):
    listener = socket.socket(family)
    listener.bind((address, int(os.environ.get('MASTER_PORT', 0)) if name == 'master' else 0))
    listener.listen(64)
    path = os.path.join(sys.argv[1], name)
    with open(path + '.new', 'w') as f:
        f.write(str(listener.getsockname()[1]))
    os.rename(path + '.new', path)
    def one(c):
        with c:
            globals().get(name, echo)(c)
    while True:
        threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()
names = ['echo', 'greet', 'deaf', 'count', 'master']
threads = [threading.Thread(target=serve, args=(name, socket.AF_INET, '127.0.0.1')) for name in names]
threads.append(threading.Thread(target=serve, args=('six', socket.AF_INET6, '::1')))
for thread in threads: thread.start()
'''


class Ports(Cluster):
    """A cluster with a job `inside` whose rank serves, and the rank's ports by name."""

    def start(self, name, command, **fields):
        folder = self.muster.folder / f'{name}-ports'
        folder.mkdir()
        super().start(name, [sys.executable, '-c', SERVER, str(folder)], **fields)
        wait_for(lambda: len([p for p in folder.iterdir() if p.suffix != '.new']) == 6, 'the ports of the rank')
        self.ports = {p.name: int(p.read_text()) for p in folder.iterdir()}

    def private(self):
        """Starts the same rank in a job with a private network, and returns its port `echo`."""
        folder = self.muster.folder / 'private-ports'
        folder.mkdir()
        made = job('private', [sys.executable, '-c', SERVER, str(folder)], annotations={'muster.dev/network': 'private'})
        self.kubectl('create', '-f', '-', stdin=json.dumps(made).encode())
        wait_for(lambda: self.phase('private-master-0') in ('Running', 'Failed'), 'the start of the job')
        if self.phase('private-master-0') == 'Failed':
            pytest.skip('no private network can be had here')
        wait_for(lambda: (folder / 'echo').exists(), 'the ports of the rank')
        return int((folder / 'echo').read_text())


@pytest.fixture(scope='module')
def cluster():
    made = Ports()
    yield made
    made.muster.close()


class Forward:
    """kubectl port-forward of one port."""

    def __init__(self, cluster, what, port):
        self.process = subprocess.Popen(['kubectl', 'port-forward', what, f':{port}'], env=cluster.env, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        match = re.match(r'Forwarding from 127.0.0.1:(\d+) -> ', line)
        assert match, line + self.process.stderr.read()
        self.port = int(match[1])
        # kubectl writes a line for each connection: a full pipe would stop it.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def connect(self):
        return socket.create_connection(('127.0.0.1', self.port), timeout=LIMIT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def receive_all(connection):
    data = bytearray()
    while piece := connection.recv(1 << 16):
        data += piece
    return bytes(data)


def send_and_close(connection, data):
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


def there_and_back(forward, data):
    """Sends data and at the same time reads what comes back; returns the bytes that came back."""
    with forward.connect() as connection:
        sender = threading.Thread(target=send_and_close, args=(connection, data))
        sender.start()
        back = receive_all(connection)
        sender.join()
    return back


def test_a_connection_that_the_rank_ends(cluster):
    with Forward(cluster, 'pod/inside-master-0', cluster.ports['greet']) as forward, forward.connect() as connection:
        assert receive_all(connection) == b'hello\n'


def test_several_connections_carry_much_both_ways_at_once(cluster):
    data = [os.urandom(1 << 20) * 50 for _ in range(2)] + [os.urandom(1 << 10) for _ in range(20)]
    with Forward(cluster, 'pod/inside-master-0', cluster.ports['echo']) as forward, \
            concurrent.futures.ThreadPoolExecutor(8) as pool:
        for sent, back in zip(data, pool.map(lambda each: there_and_back(forward, each), data)):
            assert len(back) == len(sent) and hashlib.sha256(back).digest() == hashlib.sha256(sent).digest()


def test_the_end_of_what_is_sent_reaches_the_rank(cluster):
    with Forward(cluster, 'pod/inside-master-0', cluster.ports['count']) as forward:
        assert there_and_back(forward, bytes(3 << 20)) == str(3 << 20).encode()


def test_a_port_of_the_other_loopback_address(cluster):
    with Forward(cluster, 'pod/inside-master-0', cluster.ports['six']) as forward:
        assert there_and_back(forward, b'six') == b'six'


def test_the_declared_port_is_where_the_master_listens(cluster):
    assert cluster.ports['master'] != 23456
    with Forward(cluster, 'service/inside-master-0', 23456) as forward:
        assert there_and_back(forward, b'master') == b'master'


def test_a_network_of_the_jobs_own(cluster):
    with Forward(cluster, 'pod/private-master-0', cluster.private()) as forward:
        assert there_and_back(forward, b'private') == b'private'


def closed_port():
    """Returns a socket, and its port, on which nobody listens while the socket is open."""
    held = socket.socket()
    held.bind(('127.0.0.1', 0))
    return held, held.getsockname()[1]


def test_a_port_that_nobody_listens_on_is_said(cluster):
    held, port = closed_port()
    with held, Forward(cluster, 'pod/inside-master-0', port) as forward, forward.connect() as connection:
        assert receive_all(connection) == b''
        forward.process.kill()
        said = forward.process.stderr.read()
    assert f'error forwarding port {port} to pod inside-master-0' in said and 'Connection refused' in said


def descriptors(cluster):
    pid = json.loads(cluster.kubectl('get', '--raw', '/muster/v1/status').stdout)['pid']
    return len(os.listdir(f'/proc/{pid}/fd'))


def test_what_a_killed_client_leaves_is_closed(cluster):
    before = descriptors(cluster)
    with Forward(cluster, 'pod/inside-master-0', cluster.ports['echo']) as forward:
        connections = [forward.connect() for _ in range(10)]
        for connection in connections:
            connection.sendall(b'x')
            assert connection.recv(1) == b'x'
        assert descriptors(cluster) >= before + 10
        forward.process.kill()
    wait_for(lambda: descriptors(cluster) <= before, 'the end of the connections')
    for connection in connections:
        connection.close()


def test_a_rank_that_ends_ends_its_connections(cluster):
    ports = cluster.ports
    cluster.start('short', None)
    short, cluster.ports = cluster.ports, ports
    with Forward(cluster, 'pod/short-master-0', short['echo']) as forward, forward.connect() as connection:
        connection.sendall(b'x')
        assert connection.recv(1) == b'x'
        cluster.kubectl('delete', 'pytorchjob', 'short')
        assert receive_all(connection) == b''


# ---- by hand ----

def portforward(query=''):
    return f'/api/v1/namespaces/default/pods/inside-master-0/portforward{query}'


def hear(client):
    """Returns the payloads of the messages until the server closes, and the close code."""
    heard = []
    while message := client.receive():
        opcode, payload = message
        if opcode == 8:
            return heard, int.from_bytes(payload[:2], 'big')
        heard.append(payload)
    return heard, None


def joined(heard, channel):
    """Returns what arrived on the channel after its port."""
    return b''.join(payload[1:] for payload in heard if payload[0] == channel)[2:]


def test_channels_of_two_ports(cluster):
    greet, count = cluster.ports['greet'], cluster.ports['echo']
    client = Client(cluster, portforward(f'?ports={greet},{count}'), 'v5.channel.k8s.io,v4.channel.k8s.io')
    assert 'Sec-WebSocket-Protocol: v4.channel.k8s.io' in client.head
    first = [client.receive()[1] for _ in range(4)]
    assert first == [bytes([channel]) + struct.pack('<H', port) for channel, port in enumerate([greet, greet, count, count])]
    client.send(b'\2hel', final=False)
    client.send(b'lo', opcode=0)
    back = b''
    while b'hello' not in back:
        payload = client.receive()[1]
        back += payload[1:] if payload[0] == 2 else b''
    client.stream.close()


def test_channels_end_with_their_ports(cluster):
    heard, code = hear(Client(cluster, portforward(f'?ports={cluster.ports["greet"]}')))
    assert joined(heard, 0) == b'hello\n' and joined(heard, 1) == b'' and code == 1000
    held, port = closed_port()
    with held:
        heard, code = hear(Client(cluster, portforward(f'?ports={port}')))
    assert b'Connection refused' in joined(heard, 1) and code == 1000


@pytest.mark.parametrize('query', ['', '?ports=', '?ports=0', '?ports=65536', '?ports=1,,2', '?ports=x', '?ports=' + ','.join('1' * 65)])
def test_no_ports_are_refused(cluster, query):
    assert Client(cluster, portforward(query)).head.startswith('HTTP/1.1 400')


class Tunnel(Client):
    """SPDY/3.1 within a WebSocket. Its headers need no dictionary: the zlib header says that there is none."""

    def __init__(self, cluster):
        super().__init__(cluster, portforward(), 'SPDY/3.1+portforward.k8s.io')
        assert self.head.startswith('HTTP/1.1 101') and 'Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io' in self.head
        self.packer = zlib.compressobj()
        self.held = b''

    def open(self, stream, port, kind, request='0'):
        block = struct.pack('>I', 3)
        for word in ('streamtype', kind, 'port', str(port), 'requestid', request):
            block += struct.pack('>I', len(word)) + word.encode()
        packed = self.packer.compress(block) + self.packer.flush(zlib.Z_SYNC_FLUSH)
        self.send(struct.pack('>HHIIIH', 0x8003, 1, 10 + len(packed), stream, 0, 0) + packed)

    def pair(self, first, port):
        self.open(first, port, 'error', str(first))
        self.open(first + 2, port, 'data', str(first))

    def data(self, stream, data, last=False):
        self.send(struct.pack('>II', stream, len(data) | last << 24) + data)

    def frame(self):
        """Returns the type of the next frame (None: data), its flags and its content; None at the end."""
        while len(self.held) < 8 or len(self.held) < 8 + int.from_bytes(self.held[5:8], 'big'):
            message = self.receive()
            if not message or message[0] == 8:
                return None
            self.held += message[1]
        kind, length = struct.unpack('>HH', self.held[:4]), int.from_bytes(self.held[5:8], 'big')
        flags, body, head = self.held[4], self.held[8:8 + length], self.held[:4]
        self.held = self.held[8 + length:]
        return (kind[1], flags, body) if kind[0] & 0x8000 else (None, flags, head + body)

    def data_of(self, stream):
        """Returns all data of the stream until its end."""
        data = b''
        while frame := self.frame():
            kind, flags, body = frame
            if kind is None and int.from_bytes(body[:4], 'big') == stream:
                data += body[4:]
                if flags & 1:
                    return data
        pytest.fail(f'stream {stream} has not ended')


def test_a_tunnel_by_hand(cluster):
    client = Tunnel(cluster)
    client.pair(1, cluster.ports['echo'])
    client.send(struct.pack('>HHII', 0x8003, 6, 4, 77))
    client.data(3, b'hello, ')
    client.data(3, b'world', last=True)
    frames = [client.frame() for _ in range(3)]
    assert [kind for kind, _, _ in frames] == [2, 2, 6] and frames[2][2] == struct.pack('>I', 77)
    assert client.data_of(3) == b'hello, world'
    assert client.data_of(1) == b''


def test_streams_that_make_no_pair_are_reset(cluster):
    client = Tunnel(cluster)
    client.open(1, cluster.ports['echo'], 'data')
    client.open(3, cluster.ports['echo'], 'data')
    client.open(5, 0, 'error')
    client.open(7, cluster.ports['echo'], 'other', '7')
    resets = []
    while len(resets) < 3:
        kind, _, body = client.frame()
        resets += [struct.unpack('>II', body)] if kind == 3 else []
    assert resets == [(3, 1), (5, 1), (7, 1)]
    for i in range(300):
        client.open(9 + 2 * i, cluster.ports['echo'], 'error', f'many {i}')
    refused = 0
    while not refused:
        kind, _, body = client.frame()
        refused = kind == 3 and struct.unpack('>II', body)[1] == 3
    client.stream.close()


@pytest.mark.parametrize('bytes_', [b'\x80\x02\0\1\0\0\0\x0a' + bytes(10), b'\x80\3\0\1\0\xff\xff\xff',
                                    b'\x80\3\0\1\0\0\0\x0e\0\0\0\1\0\0\0\0\0\0rubb'],
                         ids=['version', 'length', 'headers'])
def test_what_is_no_spdy_ends_the_tunnel(cluster, bytes_):
    client = Tunnel(cluster)
    client.send(bytes_)
    while message := client.receive():
        if message[0] == 8:
            assert int.from_bytes(message[1][:2], 'big') == 1002
            return
    pytest.fail('it was not closed')


def test_streams_have_rising_odd_numbers(cluster):
    for second in (1, 2):
        client = Tunnel(cluster)
        client.open(1, cluster.ports['echo'], 'error')
        client.open(second, cluster.ports['echo'], 'data')
        while client.frame():
            pass


def resident(cluster):
    pid = json.loads(cluster.kubectl('get', '--raw', '/muster/v1/status').stdout)['pid']
    with open(f'/proc/{pid}/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def test_who_does_not_read_costs_little(cluster):
    """A rank that reads nothing blocks its client; a client that reads nothing blocks the rank."""
    before = resident(cluster)
    client = Tunnel(cluster)
    client.pair(1, cluster.ports['deaf'])
    client.stream.settimeout(2)
    piece = bytes(1 << 16)
    with pytest.raises(TimeoutError):
        for _ in range(2000):
            client.data(3, piece)
    other = Tunnel(cluster)
    other.pair(1, cluster.ports['echo'])
    other.stream.settimeout(2)
    with pytest.raises(TimeoutError):
        for _ in range(2000):
            other.data(3, piece)
    assert resident(cluster) - before < 32 << 20
    client.stream.close()
    other.stream.close()

"""kubectl exec, cp and attach, unmodified, and WebSocket clients (RFC 6455) written by hand.

Needs kubectl; without it each test is skipped, with that reason.
"""
import base64
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import socket
import ssl
import struct
import subprocess

import pytest
from conftest import LIMIT_S, Muster, job, shell, wait_for

pytestmark = pytest.mark.skipif(not shutil.which('kubectl'), reason='kubectl is not installed')

POD = 'inside-master-0'


class Cluster:
    """One controller with one rank that runs, and a kubectl that talks to it."""

    def __init__(self):
        self.muster = Muster()
        self.muster.run('up')
        config = self.muster.folder / 'kubeconfig'
        config.write_text(self.muster.run('kubeconfig').stdout)
        self.env = dict(self.muster.env, KUBECONFIG=str(config), HOME=str(self.muster.folder))
        self.start('inside', shell('exec sleep 600'))

    def start(self, name, command, **fields):
        made = job(name, command)
        made['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0].update(fields)
        self.kubectl('create', '-f', '-', stdin=json.dumps(made).encode())
        wait_for(lambda: self.phase(f'{name}-master-0') == 'Running', f'the start of {name}')

    def phase(self, pod):
        return self.kubectl('get', 'pod', pod, '-o', 'jsonpath={.status.phase}', '--ignore-not-found').stdout.decode()

    def kubectl(self, *words, stdin=b'', code=0):
        done = subprocess.run(['kubectl', *words], env=self.env, input=stdin, capture_output=True, timeout=LIMIT_S, check=False)
        assert done.returncode == code, f'kubectl {words}: {done.returncode}, {done.stderr}{self.muster.log()}'
        return done

    def sessions(self):
        """Returns the number of commands that run beside the rank: processes called muster-exec that have this MUSTER_HOME."""
        home = f'MUSTER_HOME={self.muster.home}'.encode()
        return sum(read(path, 'comm') == b'muster-exec\n' and home in read(path, 'environ').split(b'\0')
                   for path in pathlib.Path('/proc').glob('[0-9]*'))


def read(folder, name):
    """Reads a file of a process that may end meanwhile."""
    try:
        return (folder / name).read_bytes()
    except OSError:
        return b''


@pytest.fixture(scope='module')
def cluster():
    made = Cluster()
    yield made
    made.muster.close()


def test_exec_runs_where_the_rank_is(cluster):
    done = cluster.kubectl('exec', POD, '--', 'sh', '-c', 'echo $RANK of $WORLD_SIZE; echo aside >&2; exit 3', code=3)
    assert done.stdout == b'0 of 1\n'
    assert b'aside\n' in done.stderr and b'command terminated with exit code 3' in done.stderr
    assert cluster.kubectl('exec', POD, '-c', 'pytorch', '--', 'true').stdout == b''
    missing = cluster.kubectl('exec', POD, '--', 'no-such-command', code=127)
    assert b'"no-such-command": executable file not found in $PATH' in missing.stderr
    assert b'not in pod' in cluster.kubectl('exec', POD, '-c', 'other', '--', 'true', code=1).stderr


def test_bytes_pass_both_ways_as_they_are(cluster):
    data = os.urandom(20 << 20)
    back = cluster.kubectl('exec', '-i', POD, '--', 'cat', stdin=data).stdout
    assert hashlib.sha256(back).digest() == hashlib.sha256(data).digest()


def test_a_command_that_does_not_read_its_input_ends(cluster):
    assert cluster.kubectl('exec', '-i', POD, '--', 'sh', '-c', 'exit 5', stdin=bytes(5 << 20), code=5)


def test_files_are_copied(cluster, tmp_path):
    (tmp_path / 'data').mkdir()
    (tmp_path / 'data' / 'big').write_bytes(os.urandom(3 << 20))
    (tmp_path / 'data' / 'small').write_text('hello')
    place = cluster.muster.folder / 'copied'
    cluster.kubectl('cp', str(tmp_path / 'data'), f'{POD}:{place}')
    assert (place / 'small').read_text() == 'hello'
    cluster.kubectl('cp', f'{POD}:{place}', str(tmp_path / 'back'))
    assert (tmp_path / 'back' / 'big').read_bytes() == (tmp_path / 'data' / 'big').read_bytes()


def test_a_terminal(cluster):
    inner = f'kubectl exec -it {POD} -- sh -c "test -t 0 && test -t 1 && until stty size | grep 41; do sleep 0.05; done"'
    done = subprocess.run(['script', '-qec', f'stty rows 41 cols 97; {inner}', '/dev/null'], env=cluster.env, stdin=subprocess.PIPE,
                          capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0 and b'41 97' in done.stdout, done.stdout


def test_attach_writes_and_follows(cluster):
    cluster.start('fed', shell('while read line; do echo got $line; done; echo over'), stdin=True)
    out = cluster.kubectl('attach', '-i', 'fed-master-0', stdin=b'one\ntwo\n').stdout
    assert out == b'got one\ngot two\nover\n'
    wait_for(lambda: cluster.phase('fed-master-0') == 'Succeeded', 'the end of the rank')
    assert b'completed pod' in cluster.kubectl('attach', 'fed-master-0', code=1).stderr


def test_a_hundred_commands_at_once(cluster):
    def run(number):
        return cluster.kubectl('exec', '-i', POD, '--', 'cat', stdin=str(number).encode()).stdout

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(100))) == [str(number).encode() for number in range(100)]
    wait_for(lambda: cluster.sessions() == 0, 'the end of the sessions')


def test_what_a_client_leaves_is_killed(cluster):
    before = cluster.sessions()
    client = subprocess.Popen(['kubectl', 'exec', POD, '--', 'sh', '-c', 'echo here; exec sleep 1000'], env=cluster.env,
                              stdout=subprocess.PIPE)
    assert client.stdout.readline() == b'here\n'
    assert cluster.sessions() == before + 1
    client.kill()
    client.wait()
    wait_for(lambda: cluster.sessions() == before, 'the end of the command')


def test_a_rank_that_ends_ends_its_commands(cluster):
    cluster.start('short', shell('exec sleep 600'))
    client = subprocess.Popen(['kubectl', 'exec', 'short-master-0', '--', 'sh', '-c', 'echo here; exec sleep 1000'],
                              env=cluster.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert client.stdout.readline() == b'here\n'
    cluster.kubectl('delete', 'pytorchjob', 'short')
    assert client.wait(LIMIT_S) == 137
    assert b'the rank ended while the command ran' in client.stderr.read()


# ---- by hand ----

class Client:
    """A WebSocket over TLS."""

    def __init__(self, cluster, target, protocol='v4.channel.k8s.io', upgrade=True):
        home = cluster.muster.home
        port = int(json.loads((home / 'server.json').read_text())['server'].rsplit(':', 1)[1])
        context = ssl.create_default_context(cafile=home / 'tls' / 'cert.pem')
        plain = socket.create_connection(('127.0.0.1', port), timeout=LIMIT_S)
        self.stream = context.wrap_socket(plain, server_hostname='127.0.0.1')
        token = (home / 'token').read_text().strip()
        head = [f'GET {target} HTTP/1.1', 'Host: muster', f'Authorization: Bearer {token}']
        if upgrade:
            key = base64.b64encode(os.urandom(16)).decode()
            head += ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', f'Sec-WebSocket-Key: {key}',
                     f'Sec-WebSocket-Protocol: {protocol}']
        self.stream.sendall('\r\n'.join([*head, '', '']).encode())
        self.file = self.stream.makefile('rb')
        self.head = b''.join(iter(self.file.readline, b'\r\n')).decode()

    def send(self, payload, opcode=2, final=True):
        mask = os.urandom(4)
        length = len(payload)
        size = bytes([0x80 | length]) if length < 126 else b'\xfe' + struct.pack('>H', length) if length < 65536 else (
            b'\xff' + struct.pack('>Q', length))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.stream.sendall(bytes([(0x80 if final else 0) | opcode]) + size + mask + masked)

    def receive(self):
        """Returns the opcode and the payload of the next message; None at the end."""
        head = self.file.read(2)
        if len(head) < 2:
            return None
        length = head[1] & 0x7f
        if length >= 126:
            length = int.from_bytes(self.file.read(2 if length == 126 else 8), 'big')
        return head[0] & 0x0f, self.file.read(length)

    def channels(self):
        """Returns what arrived on each channel until the server closed; the close code is at 'close'."""
        heard = {}
        while message := self.receive():
            opcode, payload = message
            if opcode == 8:
                heard['close'] = int.from_bytes(payload[:2], 'big')
                return heard
            if payload:
                heard[payload[0]] = heard.get(payload[0], b'') + payload[1:]
        return heard


def target(words, streams='stdin=true&stdout=true&stderr=true', pod=POD):
    return f'/api/v1/namespaces/default/pods/{pod}/exec?' + '&'.join(f'command={word}' for word in words) + '&' + streams


def test_version_4_says_how_it_ended(cluster):
    client = Client(cluster, target(['sh', '-c', 'echo%20out;echo%20err>%262;exit%207']))
    assert client.head.startswith('HTTP/1.1 101') and 'Sec-WebSocket-Protocol: v4.channel.k8s.io' in client.head
    heard = client.channels()
    status = json.loads(heard[3])
    assert (heard[1], heard[2], heard['close']) == (b'out\n', b'err\n', 1000)
    assert status['reason'] == 'NonZeroExitCode' and status['details']['causes'] == [{'reason': 'ExitCode', 'message': '7'}]
    assert json.loads(Client(cluster, target(['true'])).channels()[3])['status'] == 'Success'


def test_version_5_ends_its_input(cluster):
    client = Client(cluster, target(['cat']), 'v5.channel.k8s.io, v4.channel.k8s.io')
    assert 'Sec-WebSocket-Protocol: v5.channel.k8s.io' in client.head
    client.send(b'\0hel', final=False)
    client.send(b'?', opcode=9)  # a ping between the fragments of a message
    client.send(b'lo', opcode=0)
    client.send(b'\xff\0')
    heard = client.channels()
    assert heard[1] == b'hello' and json.loads(heard[3])['status'] == 'Success'


@pytest.mark.parametrize('bytes_', [b'\x82\x05hello', b'\xf2\x80abcd', b'\x83\x80abcd', b'\x80\x80abcd', b'\x82\xff' + b'\xff' * 12],
                         ids=['no mask', 'reserved bits', 'opcode', 'continuation', 'length'])
def test_what_is_no_frame_ends_the_connection(cluster, bytes_):
    client = Client(cluster, target(['cat']))
    client.stream.sendall(bytes_)
    assert client.channels().get('close') == 1002
    wait_for(lambda: cluster.sessions() == 0, 'the end of the command')


def test_who_does_not_read_costs_little(cluster):
    pid = json.loads(cluster.kubectl('get', '--raw', '/muster/v1/status').stdout)['pid']

    def resident():
        return int(pathlib.Path('/proc', str(pid), 'statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')

    before = resident()
    clients = [Client(cluster, target(['cat', '/dev/zero'])) for _ in range(20)]
    assert all(client.receive() for client in clients)
    assert Client(cluster, target(['true'])).channels()['close'] == 1000
    assert resident() - before < 64 << 20
    for client in clients:
        client.stream.close()
        client.file.close()
    wait_for(lambda: cluster.sessions() == 0, 'the end of the commands')


def test_who_asks_for_no_websocket_is_told(cluster):
    refused = Client(cluster, target(['true']), upgrade=False)
    assert refused.head.startswith('HTTP/1.1 400')
    assert 'HTTP/1.1 400' in Client(cluster, target(['true']), protocol='channel.k8s.io').head
    assert 'HTTP/1.1 404' in Client(cluster, target(['true'], pod='nobody')).head


def test_streams_end_with_the_controller():
    cluster = Cluster()
    client = Client(cluster, target(['cat']))
    assert client.head.startswith('HTTP/1.1 101')
    cluster.muster.run('down')
    while client.receive():
        pass
    cluster.muster.close()

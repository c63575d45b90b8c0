"""Workers of an elastic job that speak the coordinator's protocol (src/wire/wire.h) and train nothing, so that a system test can send a
coordinator any message at any moment, in one thread.

As a program it is one worker in a separate process: `elastic_speaker.py ADDRESS INCARNATION`. It joins, prints a line for each message it
gets, and stays until it is killed.
"""
import os
import select
import socket
import struct
import sys

KINDS = ['', 'HELLO', 'JOIN', 'LEAVE', 'REPORT', 'COMMITS', 'ASK', 'PROGRESS', 'CHECKPOINT', 'WELCOME', 'REFUSED', 'OPEN', 'CLOSE',
         'ACK', 'GRANT', 'EXPELLED', 'DATASET', 'ENROLL', 'FETCH', 'DONE', 'LEASED', 'RECEIPT', 'TO_DO', 'CHECKPOINT_FAILED', 'PASS', 'FAIL', 'HEALED',
         'SILENT']
VERSION, FRAME_MAX = 10, 4 << 20
TOKEN = 'ab' * 32


def text(value):
    return struct.pack('<I', len(value)) + value.encode()


def ranges(*each):
    """Encodes ranges, each given as (epoch, first, count)."""
    return struct.pack('<I', len(each)) + b''.join(struct.pack('<IIQI', 0, *one) for one in each)


def steps(each):
    """Encodes steps, each given as (version, (epoch, first, count))."""
    return struct.pack('<I', len(each)) + b''.join(struct.pack('<QI', version, 0) + ranges(span) for version, span in each)


def frame(kind, body=b'', term=0):
    return struct.pack('<IBQ', 9 + len(body), KINDS.index(kind), term) + body


def hello(incarnation, token=TOKEN, version=VERSION):
    """Encodes a HELLO without a PID, because the process is the test's own."""
    return frame('HELLO', struct.pack('<IQ', version, incarnation) + bytes.fromhex(token) + struct.pack('<QI', 0, 0))


def connect(address, limit_s=60):
    kind, _, where = address.partition(':')
    if kind == 'unix':
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(limit_s)
        sock.connect(where)
        return sock
    host, _, port = where.rpartition(':')
    return socket.create_connection((host, int(port)), timeout=limit_s)


def parse(kind, body):
    def word(at):
        return struct.unpack_from('<Q', body, at)[0]

    def string(at):
        size = struct.unpack_from('<I', body, at)[0]
        return body[at + 4:at + 4 + size].decode()
    if kind == 'OPEN':
        at = 25 + 4 + len(string(25)) + 32
        count = struct.unpack_from('<I', body, at)[0]
        return {'generation': word(0), 'base': word(8), 'lineage': word(16), 'restore': body[24],
                'members': [word(at + 4 + 265 * i) for i in range(count)]}
    if kind == 'CLOSE':
        return {'generation': word(0), 'boundary': body[8]}
    if kind == 'ACK':
        return {'version': word(0)}
    if kind == 'REFUSED':
        return {'why': string(0)}
    if kind == 'EXPELLED':
        return {'reason': struct.unpack_from('<I', body, 8)[0], 'why': string(12)}
    if kind == 'DATASET':
        size = len(string(0)) + 4
        number, task, records, epochs, batch, micro_batches = struct.unpack_from('<IIQIII', body, size)
        return {'number': number, 'task': task, 'records': records, 'epochs': epochs, 'batch': batch, 'micro_batches': micro_batches}
    return {}


class Plan:
    """Steps of `batch * micro_batches` positions; the steps of an epoch follow one another."""

    def __init__(self, records=1000, epochs=2, batch=8, micro_batches=4, name='mnist', limit=None):
        self.records, self.epochs, self.batch, self.micro_batches, self.name = records, epochs, batch, micro_batches, name
        self.of_epoch = -(-records // (batch * micro_batches))
        self.steps = min(self.of_epoch * epochs, limit or self.of_epoch * epochs)

    def span(self, version):
        epoch, number = divmod(version - 1, self.of_epoch)
        first = number * self.batch * self.micro_batches
        return epoch, first, min(self.batch * self.micro_batches, self.records - first)

    def frame(self):
        return frame('DATASET', text(self.name) + struct.pack('<IIQIIIIQ??Q', 0, 0, self.records, self.epochs, self.batch,
                                                              self.micro_batches, 1, 7, False, False, 0))


class Worker:
    """The member's side of the protocol in docs/step-commit.md; its model is only a version number."""

    def __init__(self, incarnation, plan, address, token=TOKEN, name=''):
        self.incarnation, self.plan, self.address, self.token = incarnation, plan, address, token
        self.name = name or f'worker-{incarnation}'
        self.sock, self.bytes, self.heard = None, b'', []
        self.term = self.generation = self.version = self.acked = 0
        self.loaded = self.closed = self.out = False
        self.ended = None

    def connect(self):
        self.close()
        self.bytes = b''
        self.sock = connect(self.address)
        self.send(hello(self.incarnation, self.token) + self.plan.frame())
        if self.generation == 0:
            self.send(frame('JOIN', bytes(256) + struct.pack('<Q', 0) + text(self.name)))
        else:
            self.report()
        self.sock.setblocking(False)

    def close(self):
        if self.sock:
            self.sock.close()
        self.sock = None

    def send(self, data):
        """Sends all of the data, or closes the connection."""
        try:
            while self.sock and data:
                try:
                    data = data[self.sock.send(data):]
                except BlockingIOError:
                    select.select([], [self.sock], [], 60)
        except OSError:
            self.close()

    def tail(self):
        return steps([(v, self.plan.span(v)) for v in range(self.acked + 1, self.version + 1)])

    def report(self, lost=0):
        ended = False  # the report says of a lost member only that it is silent
        self.send(frame('REPORT', struct.pack('<QQQ???', self.generation, self.version, lost, ended, self.closed, self.loaded) +
                        self.tail() + steps([]) + ranges()))

    def commit(self):
        """Advances this worker by one step, and sends its COMMITS."""
        self.version += 1
        self.loaded = True
        self.send(frame('COMMITS', struct.pack('<Q', self.generation) + self.tail()))

    def lose(self, incarnation):
        self.closed = True
        self.report(incarnation)

    def leave(self, finished):
        self.send(frame('LEAVE', struct.pack('<??', finished, False)))

    def take(self):
        """Yields the messages that have arrived, as (kind, fields); closes the connection when it has ended."""
        try:
            while self.sock:
                data = self.sock.recv(65536)
                if not data:
                    self.close()
                    break
                self.bytes += data
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        while len(self.bytes) >= 4 and len(self.bytes) >= 4 + struct.unpack('<I', self.bytes[:4])[0]:
            size = 4 + struct.unpack('<I', self.bytes[:4])[0]
            kind, term = struct.unpack_from('<BQ', self.bytes, 4)
            body, self.bytes = self.bytes[13:size], self.bytes[size:]
            yield KINDS[kind], {**parse(KINDS[kind], body), 'term': term}

    def hear(self):
        for kind, fields in self.take():
            self.heard.append((kind, fields))
            if fields['term'] < self.term:
                continue
            self.term = fields['term']
            if kind == 'OPEN' and fields['generation'] > self.generation:
                assert not self.loaded or fields['restore'] or fields['base'] == self.version, (fields, self.version)
                self.generation, self.version, self.acked = fields['generation'], fields['base'], fields['base']
                self.closed, self.loaded = False, self.loaded and not fields['restore']
            elif kind == 'CLOSE' and fields['generation'] == self.generation and not self.closed:
                self.closed = True
                self.report()
            elif kind == 'ACK' and self.acked < fields['version'] <= self.version:
                self.acked = fields['version']
            elif kind in ('EXPELLED', 'REFUSED'):
                self.ended = fields['why']
                assert 'speaks version' not in self.ended, f'{self.ended}: the fields here are those of an older src/wire/wire.h'


class Team:
    """Workers of one generation, in step with each other. `turns` yields moments, up to a limit (program.turns)."""

    def __init__(self, workers, turns):
        self.workers, self.turns = workers, turns

    def pump(self, reconnect=True):
        """Handles the messages that have arrived; workers without a connection connect again."""
        for worker in self.workers:
            if not worker.sock and reconnect and worker.ended is None:
                try:
                    worker.connect()
                except OSError:
                    worker.close()
            worker.hear()

    def until(self, condition, what, reconnect=True):
        for _ in self.turns():
            self.pump(reconnect)
            if condition():
                return
        raise AssertionError(f'{what}: ' + ', '.join(
            f'{w.name} at {w.generation}/{w.version}, {w.heard[-3:]}, {w.ended}' for w in self.workers))

    def is_open(self):
        return all(w.generation == self.workers[0].generation > 0 and not w.closed for w in self.workers)

    def step(self, reconnect=True):
        """Makes one step of all workers and returns true; returns false if no generation is open."""
        self.pump(reconnect)
        if not self.is_open():
            return False
        for worker in self.workers:
            worker.commit()
        return True

    def finish(self):
        """Waits until the last step is acknowledged to all workers, and ends each of them."""
        last = self.workers[0].plan.steps
        self.until(lambda: all(w.acked == last for w in self.workers), 'the last step is acknowledged')
        for worker in self.workers:
            worker.leave(True)
            worker.close()


def main():
    worker = Worker(int(sys.argv[2]), Plan(), sys.argv[1], os.environ['MUSTER_COORDINATOR_TOKEN'])
    worker.connect()
    while worker.sock:
        select.select([worker.sock], [], [])
        worker.hear()
        while worker.heard:
            print(*worker.heard.pop(0), flush=True)


if __name__ == '__main__':
    main()

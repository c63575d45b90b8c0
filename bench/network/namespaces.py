"""Hosts made of network namespaces: each has one interface to a switch, which is a namespace of its own, so that the
machine's own network is not changed. Needs root, ip and tc; `missing()` returns what is missing."""
import contextlib
import os
import shutil
import subprocess

TOOLS = ('ip', 'tc', 'unshare')


def missing():
    if os.geteuid() != 0:
        return 'root, to make network namespaces'
    absent = [tool for tool in TOOLS if not shutil.which(tool)]
    return f'{", ".join(absent)} (packages iproute2, util-linux)' if absent else None


def _run(*words):
    subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True)


class Hosts:
    """names[i] is a namespace with the address addresses[i]."""

    def __init__(self, number, megabits=None):
        self.names = [f'muster-{os.getpid()}-h{i}' for i in range(number)]
        self.addresses = [f'10.123.45.{i + 1}' for i in range(number)]
        self.switch = f'muster-{os.getpid()}-switch'
        self.megabits = megabits

    def _add_namespace(self, name):
        _run('ip', 'netns', 'add', name)
        _run('ip', '-n', name, 'link', 'set', 'lo', 'up')

    def _shape(self, name, device):
        if self.megabits:
            # Packets must be far smaller than the bucket: one that fills it waits until nothing flows in, and data that a wire does not carry
            # in time is lost capacity. With packets of 64 KiB even a plain stream reaches only 75 to 95 % of the wire.
            _run('ip', '-n', name, 'link', 'set', 'dev', device, 'gso_max_size', 16384)
            _run('tc', '-n', name, 'qdisc', 'add', 'dev', device, 'root', 'tbf', 'rate', f'{self.megabits}mbit',
                 'burst', '64kb', 'latency', '20ms')

    def _connect(self, index):
        name, port = self.names[index], f'port{index}'
        _run('ip', '-n', self.switch, 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
        _run('ip', '-n', self.switch, 'link', 'set', port, 'master', 'bridge', 'up')
        _run('ip', '-n', name, 'address', 'add', f'{self.addresses[index]}/24', 'dev', 'eth0')
        _run('ip', '-n', name, 'link', 'set', 'eth0', 'up')
        self._shape(name, 'eth0')  # packets that the host sends …
        self._shape(self.switch, port)  # … and packets that are sent to it

    def __enter__(self):
        try:
            self._add_namespace(self.switch)
            _run('ip', '-n', self.switch, 'link', 'add', 'bridge', 'type', 'bridge')
            _run('ip', '-n', self.switch, 'link', 'set', 'bridge', 'up')
            for index, name in enumerate(self.names):
                self._add_namespace(name)
                self._connect(index)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in [*self.names, self.switch]:
            with contextlib.suppress(subprocess.CalledProcessError):
                _run('ip', 'netns', 'delete', name)

    def command(self, index, *words):
        """Returns the words that run a command on a host, under the host's name."""
        return ['ip', 'netns', 'exec', self.names[index], 'unshare', '--uts', 'sh', '-c', 'hostname "$0"; exec "$@"',
                self.names[index], *map(str, words)]

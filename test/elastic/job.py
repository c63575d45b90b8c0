"""An elastic job of real processes: a coordinator, and workers (elastic_worker) that tests kill, stop and ask to leave."""
import os
import pathlib
import signal
import subprocess

from program import BUILD, wait_for

TOKEN = '5a' * 32


class Worker:
    """One process. Its output is a file; `version` and `size` are those of its last committed step."""

    def __init__(self, job, number, sleep_ms):
        self.path = job.folder / f'worker-{number}'
        words = [str(word) for word in (job.records, job.epochs, job.batch, job.micro_batches, sleep_ms)]
        with open(self.path, 'wb') as output:
            self.process = subprocess.Popen([str(BUILD / 'tests' / job.program), *words], stdout=output, stderr=subprocess.STDOUT,
                                            env=job.environment)
        self.signalled = None

    def lines(self):
        return self.path.read_text(errors='replace').splitlines()

    def steps(self):
        """(version, workers, time in ns) of each step that it has committed."""
        whole = self.path.read_text(errors='replace').rpartition('\n')[0]
        return [tuple(int(word) for word in line.split()[1:]) for line in whole.splitlines() if line.startswith('step ')]

    def last(self):
        """Of the last step; cheap: only the end of the file is read."""
        with open(self.path, 'rb') as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 200))
            found = [line for line in file.read().split(b'\n')[:-1] if line.startswith(b'step ')]
        return tuple(int(word) for word in found[-1].split()[1:]) if found else (0, 0, 0)

    @property
    def version(self):
        return self.last()[0]

    @property
    def size(self):
        return self.last()[1]

    def alive(self):
        return self.process.poll() is None

    def send(self, number):
        self.signalled = number
        self.process.send_signal(number)

    def end(self):
        """How it says that it ended: its last line's first word, and the rest as a dictionary."""
        word, *rest = self.lines()[-1].split()
        return word, dict(item.split('=', 1) for item in rest if '=' in item)


class Job:
    def __init__(self, folder, records=97, epochs=10, batch=4, micro_batches=5, sleep_ms=1, **options):
        self.folder = pathlib.Path(folder)
        self.program = 'elastic_worker'
        self.records, self.epochs, self.batch, self.micro_batches, self.sleep_ms = records, epochs, batch, micro_batches, sleep_ms
        self.socket = self.folder / 'socket'
        self.options = [word for name, value in options.items() for word in (f'--{name.replace("_", "-")}', str(value))]
        self.address = f'unix:{self.socket}'
        self.environment = dict(os.environ, MUSTER_COORDINATOR=self.address, MUSTER_COORDINATOR_TOKEN=TOKEN)
        self.environment.pop('MUSTER_MICRO_BATCHES', None)
        self.workers = []
        self.coordinator = None

    def steps(self):
        each = self.batch * self.micro_batches
        return -(-self.records // each) * self.epochs

    def start_coordinator(self):
        with open(self.folder / 'coordinator', 'ab') as output:
            self.coordinator = subprocess.Popen(
                [str(BUILD / 'bin' / 'muster'), 'coordinator', '--listen', self.address, '--journal', str(self.folder / 'journal'),
                 *self.options], stdout=output, stderr=subprocess.STDOUT, env=self.environment)

    def log(self):
        return (self.folder / 'coordinator').read_text(errors='replace')

    def use_tcp(self):
        """Before anything is started: the coordinator says which port it has got."""
        self.address = 'tcp:127.0.0.1:0'
        self.start_coordinator()
        wait_for(lambda: 'listening at ' in self.log(), 'the coordinator listens')
        self.address = self.log().split('listening at ')[1].split(',')[0]
        self.environment['MUSTER_COORDINATOR'] = self.address

    def add_worker(self, sleep_ms=None):
        self.workers.append(Worker(self, len(self.workers), self.sleep_ms if sleep_ms is None else sleep_ms))
        return self.workers[-1]

    def alive(self):
        return [worker for worker in self.workers if worker.alive()]

    def version(self):
        return max((worker.version for worker in self.workers), default=0)

    def wait_for_version(self, version):
        wait_for(lambda: self.version() >= version, f'version {version} (at {self.version()})')

    def wait_for_end(self):
        """All that are left end well, and so does the coordinator."""
        for worker in self.alive():
            wait_for(lambda: not worker.alive(), f'the end of {worker.path}')
        wait_for(lambda: self.coordinator.poll() is not None, 'the end of the coordinator')
        return self.coordinator.returncode

    def __enter__(self):
        if not self.coordinator:
            self.start_coordinator()
        return self

    def __exit__(self, *_):
        for process in [worker.process for worker in self.workers] + [self.coordinator]:
            if process and process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()

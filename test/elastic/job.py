"""An elastic job of real processes: a coordinator, and workers (elastic_worker) that tests kill, stop and ask to leave."""
import os
import pathlib
import signal
import subprocess

from program import BUILD, wait_for

TOKEN = '5a' * 32
HELD_STEPS = 10


def run_test(program, *words, **options):
    """Runs a test program and returns what it prints."""
    return subprocess.run([BUILD / 'tests' / program, *map(str, words)], stdout=subprocess.PIPE, text=True, check=True, **options).stdout


def ended(line):
    """Returns the NAME=VALUE items of the line by which a program reports how it ended, as a dictionary."""
    return dict(item.split('=', 1) for item in line.split() if '=' in item)


class Worker:
    """A worker process. Its output is a file; `version` and `size` are those of its last committed step."""

    def __init__(self, job, number, sleep_ms):
        self.path = job.folder / f'worker-{number}'
        with open(self.path, 'wb') as output:
            self.process = subprocess.Popen(job.worker_words(number, sleep_ms), stdout=output, stderr=subprocess.STDOUT, env=job.environment)
        self.signalled = None

    def lines(self):
        return self.path.read_text(errors='replace').splitlines()

    def steps(self):
        """Returns (version, workers, time in ns) for each step that it has committed."""
        whole = self.path.read_text(errors='replace').rpartition('\n')[0]
        return [tuple(int(word) for word in line.split()[1:]) for line in whole.splitlines() if line.startswith('step ')]

    def last(self):
        """Returns the same for the last step. It is cheap, because it reads only the end of the file."""
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

    def kill(self):
        self.send(signal.SIGKILL)
        self.process.wait()

    def end(self):
        """Returns how it ended, by its last line: the first word, and the rest as a dictionary."""
        word, *_ = self.lines()[-1].split()
        return word, ended(self.lines()[-1])


class Job:
    """A job. held: no worker computes the last steps before wait_for_end() is called, so that a fault comes before the end, however late the
    test is."""

    def __init__(self, folder, records=97, epochs=10, batch=4, micro_batches=5, sleep_ms=1, held=False, **options):
        self.folder = pathlib.Path(folder)
        self.program, self.muster = 'elastic_worker', 'bin/muster'
        self.records, self.epochs, self.batch, self.micro_batches, self.sleep_ms = records, epochs, batch, micro_batches, sleep_ms
        self.socket = self.folder / 'socket'
        self.options = [word for name, value in options.items() for word in (f'--{name.replace("_", "-")}', str(value))]
        self.address = f'unix:{self.socket}'
        self.environment = dict(os.environ, MUSTER_COORDINATOR=self.address, MUSTER_COORDINATOR_TOKEN=TOKEN)
        self.environment.pop('MUSTER_MICRO_BATCHES', None)
        self.workers = []
        self.coordinator = None
        self.held = held
        if held:
            (self.folder / 'gate').write_bytes(bytes(self.steps() - HELD_STEPS))
            self.environment.update(MUSTER_TEST_GATE=str(self.folder / 'gate'), MUSTER_TEST_GO=str(self.folder / 'go'))

    def steps(self):
        each = self.batch * self.micro_batches
        return -(-self.records // each) * self.epochs

    def worker_words(self, _, sleep_ms):
        shape = (self.records, self.epochs, self.batch, self.micro_batches, sleep_ms)
        return [str(BUILD / 'tests' / self.program), *map(str, shape)]

    def coordinator_words(self):
        return [str(BUILD / self.muster), 'coordinator', '--listen', self.address, '--journal', str(self.folder / 'journal'),
                *self.options]

    def start_coordinator(self):
        with open(self.folder / 'coordinator', 'ab') as output:
            self.coordinator = subprocess.Popen(self.coordinator_words(), stdout=output, stderr=subprocess.STDOUT, env=self.environment)

    def kill_coordinator(self):
        self.coordinator.kill()
        self.coordinator.wait()

    def log(self):
        return (self.folder / 'coordinator').read_text(errors='replace')

    def use_tcp(self):
        """Uses TCP, and starts the coordinator, which prints the port that it got. To be called before anything is started."""
        self.address = 'tcp:127.0.0.1:0'
        self.start_coordinator()
        wait_for(lambda: 'listening at ' in self.log(), 'the coordinator listens')
        self.address = self.log().split('listening at ')[1].split(',')[0]
        self.environment['MUSTER_COORDINATOR'] = self.address

    def add_worker(self, sleep_ms=None):
        self.workers.append(Worker(self, len(self.workers), self.sleep_ms if sleep_ms is None else sleep_ms))
        return self.workers[-1]

    def add_workers(self, count):
        return [self.add_worker() for _ in range(count)]

    def kill_workers(self):
        """Kills all workers, before any of them can hear of another's death."""
        for worker in self.alive():
            worker.send(signal.SIGKILL)
        for worker in self.workers:
            worker.process.wait()

    def alive(self):
        return [worker for worker in self.workers if worker.alive()]

    def version(self):
        return max((worker.version for worker in self.workers), default=0)

    def wait_for_version(self, version):
        wait_for(lambda: self.version() >= version, f'version {version} (at {self.version()})')

    def wait_for_end(self):
        """Waits until all workers that are left, and the coordinator, have ended; returns the coordinator's exit code."""
        if self.held:
            (self.folder / 'go').touch()
        for worker in self.alive():
            wait_for(lambda: not worker.alive(), f'the end of {worker.path}')
        wait_for(lambda: self.coordinator.poll() is not None, 'the end of the coordinator')
        return self.coordinator.returncode

    def passes(self):
        """Returns the records of each committed step, a line for each micro-batch, from the journal of the coordinator, which must have
        ended."""
        return run_test('elastic_journal', self.folder / 'journal').splitlines()

    def serial(self, passes=None):
        """Returns the result of a single process that trains these records and knows nothing else, in the form of Worker.end()'s dictionary."""
        passes = self.passes() if passes is None else passes
        return ended(run_test('elastic_serial', self.records, self.epochs, input='\n'.join(passes)))

    def __enter__(self):
        if not self.coordinator:
            self.start_coordinator()
        return self

    def __exit__(self, *_):
        for process in [worker.process for worker in self.workers] + [self.coordinator]:
            if process and process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()

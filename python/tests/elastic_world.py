"""An elastic job for the tests: a real coordinator, and workers that are real processes, each with a file for its output."""
import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile

from conftest import HERE, PACKAGE, STRAY

from program import BUILD, LIMIT_S, wait_for


class Process:
    def __init__(self, name, folder, command, env):
        self.name, self.out = name, folder / f'{name}.out'
        with open(self.out, 'wb') as file:
            self.popen = subprocess.Popen(list(map(str, command)), env=env, stdout=file, stderr=subprocess.STDOUT, cwd=folder,
                                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def text(self):
        return self.out.read_text(errors='replace')

    def lines(self, start):
        """Returns the rest of each complete line that begins with `start`."""
        text = self.text()
        return [line[len(start):].strip() for line in text[:text.rfind('\n') + 1].splitlines() if line.startswith(start)]

    def wait_for_line(self, start, count=1):
        def look():
            ended = self.popen.poll() is not None
            found = self.lines(start)
            assert len(found) >= count or not ended, f'{self.name} ended ({self.popen.returncode}) without {start!r}: {self.text()}'
            return found if len(found) >= count else None
        return wait_for(look, f'{self.name} says {start!r} {count} times')[-1]

    def signal(self, number):
        self.popen.send_signal(number)

    def end(self, code=0):
        try:
            self.popen.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'{self.name} does not end: {self.text()}') from None
        assert code is None or self.popen.returncode == code, f'{self.name} ended with {self.popen.returncode}: {self.text()}'
        return self.popen.returncode


class World:
    """One job. first: the number of workers for which the first generation waits; words: more options of the coordinator."""

    def __init__(self, first=1, python=None, words=()):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='muster-elastic-'))
        self.python, self.workers, self.coordinators = python, [], []
        self.env = {k: v for k, v in os.environ.items() if k not in STRAY and not k.startswith('MUSTER_')}
        self.env.update(PYTHONPATH=str(PACKAGE), OMP_NUM_THREADS='1', PYTHONFAULTHANDLER='1', PYTHONUNBUFFERED='1',
                        TMPDIR=str(self.folder), MUSTER_COORDINATOR=f'unix:{self.folder}/socket', MUSTER_COORDINATOR_TOKEN=secrets.token_hex(32))
        self.first, self.words = first, words
        self.start_coordinator()

    def start_coordinator(self):
        """Starts a coordinator; if an earlier one was killed, the new one goes on from its journal."""
        ready = self.folder / 'ready'
        ready.unlink(missing_ok=True)
        command = [BUILD / 'bin/muster', 'coordinator', '--listen', self.env['MUSTER_COORDINATOR'], '--journal',
                   self.folder / 'journal', '--first-size', self.first, '--first-wait', f'{LIMIT_S}s', '--ready-file', ready, *self.words]
        process = Process(f'coordinator-{len(self.coordinators)}', self.folder, command, self.env)
        self.coordinators.append(process)
        wait_for(lambda: ready.exists() or process.popen.poll() is not None, 'the coordinator is ready')
        assert ready.exists(), process.text()
        return process

    def restart_coordinator(self):
        """Kills the coordinator and starts another one."""
        self.coordinators[-1].signal(signal.SIGKILL)
        self.coordinators[-1].end(-signal.SIGKILL)
        self.start_coordinator()

    def start(self, script, *args, env=None, python=None):
        """Starts a worker: a file of workers/, or arguments of python in its place ('-m', …)."""
        words = [script] if script.startswith('-') else [HERE / 'workers' / script]
        process = Process(f'worker-{len(self.workers)}', self.folder, [python or self.python, *words, *args],
                          {**self.env, **(env or {})})
        self.workers.append(process)
        return process

    def start_held(self, *args, **kwargs):
        """Starts a worker that imports everything and then waits for let() before it joins: importing torch takes longer than training here."""
        return self.start(*args, **kwargs, env={'HOLD': f'hold-{len(self.workers)}'})

    def let(self, *workers):
        """Lets the workers join, after all of them are ready."""
        for worker in workers:
            worker.wait_for_line('ready')
        for worker in workers:
            (self.folder / worker.name.replace('worker', 'hold')).touch()

    def go(self):
        """Lets paced jobs run to their end."""
        (self.folder / 'go').touch()

    def passes(self):
        """Returns the records of each committed step, a line for each micro-batch, from the coordinator's journal. The coordinator has ended."""
        command = [BUILD / 'tests/elastic_journal', self.folder / 'journal']
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()

    def replay(self, *lists):
        """Returns, for each list of passes, the digest of the model that a plain loop of torch trains with them (elastic_plain.py). The loop has
        nothing else of the job."""
        files = []
        for number, lines in enumerate(lists):
            files.append(self.folder / f'passes-{number}')
            files[-1].write_text('\n'.join(lines))
        plain = self.start('elastic_plain.py', 'replay', *files, env={'PYTHONPATH': ''})
        plain.end()
        return [json.loads(line)['sha256'] for line in plain.lines('end ')]

    def close(self):
        for process in self.workers + self.coordinators:
            if process.popen.poll() is None:
                process.popen.kill()
            process.popen.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

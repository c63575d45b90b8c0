"""Clients of other projects, as programs: client-go (clients/main.go) and the kubeflow-training SDK (clients/training.py). Both are built here
with pinned versions, and kept in the user's cache; without Go or the network the build fails.
"""
import fcntl
import hashlib
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import threading

from cluster import die_with_parent
from program import LIMIT_S

SOURCES = pathlib.Path(__file__).parent / 'clients'
CACHE = pathlib.Path(os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache') / 'muster'
MAKE_LIMIT_S = 900


def make(*words, **options):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=MAKE_LIMIT_S, check=False,
                          **options)
    assert done.returncode == 0, f'{" ".join(map(str, words))}: {done.stdout}'


def go_environment():
    """Returns an environment in which Go keeps compiled files in the cache that tools/kubernetes/build also uses: the modules have the same
    versions."""
    assert shutil.which('go'), 'clients in Go need Go 1.26 or newer, and there is none here'
    cache = {'GOMODCACHE': str(CACHE / 'kubernetes-go/modules'), 'GOCACHE': str(CACHE / 'kubernetes-go/objects')}
    return {**os.environ, **cache, 'GOWORK': 'off', 'CGO_ENABLED': '0', 'GOFLAGS': '-mod=readonly -modcacherw -trimpath -buildvcs=false'}


def go_program(folder):
    """Compiles clients/main.go into the folder, and returns the program's path."""
    make('go', 'build', '-o', folder / 'clients', '.', cwd=SOURCES, env=go_environment())
    return folder / 'clients'


def sdk_python():
    """Returns the python3 of a virtual environment with clients/requirements.txt. The name of its folder has a hash of that file; a file `complete`
    shows that it is not half made."""
    wanted = SOURCES / 'requirements.txt'
    place = CACHE / f'sdk-{hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()[:12]}'
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / 'sdk.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / 'complete').exists():
            shutil.rmtree(place, ignore_errors=True)
            make(sys.executable, '-m', 'venv', place)
            make(place / 'bin/python', '-m', 'pip', 'install', '-q', '--no-deps', '-r', wanted)
            (place / 'complete').touch()
    return place / 'bin/python'


class Sdk:
    """A TrainingClient in a process (clients/training.py); requests and answers are lines."""

    def __init__(self, python, kubeconfig, namespace):
        self.process = subprocess.Popen([python, SOURCES / 'training.py', kubeconfig, namespace], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        self.answers, self.said = queue.Queue(), queue.Queue()
        self.readers = [threading.Thread(target=self.read, args=each, daemon=True)
                        for each in ((self.process.stdout, self.answers), (self.process.stderr, self.said))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, into):
        for line in stream:
            into.put(line)
        into.put(None)

    def take(self, box):
        line = box.get(timeout=LIMIT_S)
        assert line is not None, f'the client ended: {list(self.said.queue)}'
        return line

    def ask(self, method, *words, **named):
        self.process.stdin.write(json.dumps({'method': method, 'words': words, 'named': named}) + '\n')
        self.process.stdin.flush()

    def answer(self):
        """Returns the next answer: what the method returned, as JSON, or the exception: {'error': its class, 'text': …}."""
        return json.loads(self.take(self.answers))

    def __call__(self, method, *words, **named):
        self.ask(method, *words, **named)
        answer = self.answer()
        assert 'error' not in answer, f'{method}: {answer}'
        return answer['value']

    def fails(self, method, *words, **named):
        """Calls a method that must raise a RuntimeError, and returns its text."""
        self.ask(method, *words, **named)
        answer = self.answer()
        assert answer.get('error') == 'RuntimeError', answer
        return answer['text']

    def wait_said(self, words):
        """Waits until the SDK has printed the words."""
        while words not in self.take(self.said):
            pass

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(LIMIT_S) == 0, list(self.said.queue)
        for reader in self.readers:
            reader.join()

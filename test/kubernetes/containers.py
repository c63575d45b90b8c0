"""When each container of a node's pods began and ended, from containerd's events. They include every container, even one that ran only
shortly."""
import calendar
import collections
import dataclasses
import itertools
import json
import pathlib
import subprocess
import threading
import time

from program import LIMIT_S, wait_for

NOTE = 'io.kubernetes.cri.'
SECOND = 10 ** 9


@dataclasses.dataclass
class Run:
    """One container: its identifier, and from when to when it ran, in nanoseconds. It begins when runc has made the container, before its program
    starts."""
    container: str
    begin: int
    end: int = None


def nanoseconds(date, clock):
    """Returns a UTC time as a number; Go prints it without zeros at the end."""
    whole, _, fraction = clock.partition('.')
    return calendar.timegm(time.strptime(f'{date} {whole}', '%Y-%m-%d %H:%M:%S')) * SECOND + int(fraction.ljust(9, '0'))


def overlaps(runs):
    """Returns pairs of one index's runs of which the second began before the first ended."""
    found, longest = [], None
    for run in sorted(runs, key=lambda run: run.begin):
        if longest and (longest.end is None or run.begin < longest.end):
            found.append((longest, run))
        if not longest or (longest.end is not None and (run.end is None or run.end > longest.end)):
            longest = run
    return found


class Containers:
    """Follows a node until it is closed. `runs`: {(namespace, pod): [Run]} for the containers with the name `container`; pods of the same name belong
    to one index of a job."""

    def __init__(self, node, container='pytorch'):
        self.node, self.container, self.failure, self.lines = node, container, None, 0
        self.runs, self.at = collections.defaultdict(list), {}
        self.process = node.run('ctr', *node.ctr_words(), 'events', stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()
        mark = itertools.count()
        wait_for(lambda: self.lines or not self.cause(next(mark)), 'containerd tells its events')

    def cause(self, mark):
        """Causes an event, which shows that events arrive."""
        self.check()
        code, said = self.node.ctr('images', 'label', 'test.local/pause:1', f'mark={mark}')
        assert code == 0, said
        return True

    def follow(self):
        try:
            for line in self.process.stdout:
                self.note(*line.decode().split(' ', 6))
                self.lines += 1
        except (OSError, ValueError, TypeError, AssertionError) as wrong:
            self.failure = wrong

    def note(self, date, clock, _zone, _name, _namespace, topic, text):
        event = json.loads(text)
        if topic == '/tasks/create':
            self.begin(event, nanoseconds(date, clock))
        elif topic in ('/tasks/exit', '/tasks/delete') and event.get('id') in (None, event['container_id']):  # not a program run in it
            run, ended = self.at.pop(event['container_id'], None), event['exited_at']
            if run:
                run.end = ended['seconds'] * SECOND + ended.get('nanos', 0)

    def begin(self, event, moment):
        """Notes that a container begins. Its pod is in its bundle, which exists until the task is deleted; the path leads through the mounts of the
        node's first process."""
        bundle = pathlib.Path(f'/proc/{self.node.first}/root{event["bundle"]}/config.json')
        notes = json.loads(bundle.read_text())['annotations']
        if notes[NOTE + 'container-type'] == 'container' and notes[NOTE + 'container-name'] == self.container:
            run = self.at[event['container_id']] = Run(event['container_id'], moment)
            self.runs[notes[NOTE + 'sandbox-namespace'], notes[NOTE + 'sandbox-name']].append(run)

    def live(self, namespace):
        """Returns {pod: identifier} of the containers that run."""
        self.check()
        return {name: run.container for (space, name), runs in list(self.runs.items()) if space == namespace for run in list(runs) if run.end is None}

    def names(self, namespace):
        """Returns the sorted names of the pods whose containers run; a name that appears twice has two running containers."""
        self.check()
        return sorted(name for (space, name), runs in list(self.runs.items()) if space == namespace for run in list(runs) if run.end is None)

    def overlaps(self):
        """Returns a sentence for each two containers of one index that ran at the same time. The event of an end may arrive late, so call this when
        no index has two that run."""
        self.check()
        return [f'{name}: {one.container[:12]} ended at {one.end}, {other.container[:12]} had begun at {other.begin}'
                for (_, name), runs in list(self.runs.items()) for one, other in overlaps(list(runs))]

    def check(self):
        assert self.failure is None and self.process.poll() is None, self.failure or self.node.log('ctr')

    def close(self):
        self.node.kill('ctr')
        self.thread.join(LIMIT_S)
        self.process.stdout.close()

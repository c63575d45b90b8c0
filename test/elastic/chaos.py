"""Random faults around an elastic job of real processes, and the checks at its end."""
import random
import signal

from job import Job
from program import turns, wait_for

STEPS_A_FAULT = 8
# An epoch has five steps. Some of them pass while the test waits for a worker that has joined.
EPOCHS_A_FAULT = 8
MOST = 4


def check_ends(job, model=None, harsh=False):
    """Checks that each worker that ended well has trained every record, and that no worker failed except those that were killed, or stopped and
    expelled for it. harsh: so much happens at once that any worker may be late to answer, and be left out. Returns the digest of the model."""
    finished = 0
    for worker in job.workers:
        code = worker.process.wait()
        if (harsh or worker.signalled in (signal.SIGKILL, signal.SIGSTOP)) and code in (-signal.SIGKILL, 75):
            continue
        if code == 69 and not worker.steps():
            continue  # it joined when the job was over and the coordinator had ended
        word, end = worker.end()
        assert {'finished': 0, 'left': 128 + signal.SIGTERM}.get(word) == code, f'{worker.path}: {code}, {worker.lines()[-1]}'
        if word == 'finished' and int(end['version']) == job.steps() and end['wrong'] == '0':
            finished += 1
            model = model or end['model']
            assert end['model'] == model, worker.path
        elif word == 'finished':
            assert not worker.steps(), f'{worker.path} finished with another model: {worker.lines()[-1]}'
    assert finished > 0
    return model


def quiet_run(folder, **shape):
    folder.mkdir()
    with Job(folder, **dict(shape, sleep_ms=0)) as job:
        job.add_worker()
        assert job.wait_for_end() == 0
        return check_ends(job)


class Chaos:
    """Causes a fault every few steps, until there have been enough. No worker trains beyond the gate, which opens from fault to fault, so that
    the job lasts as long as there are faults to come."""

    def __init__(self, job, seed):
        self.job, self.random, self.done, self.woken = job, random.Random(seed), [], set()
        self.gate, self.go = job.folder / 'gate', job.folder / 'go'
        self.gate.touch()
        job.environment.update(MUSTER_TEST_GATE=str(self.gate), MUSTER_TEST_GO=str(self.go))

    def members(self):
        """Returns the workers to which nothing has been done, or that were woken in time. At least one stays, because the model would be lost
        with the last one."""
        return [worker for worker in self.job.alive() if worker.signalled is None or worker in self.woken]

    def trained(self):
        return [worker for worker in self.members() if worker.version > 0]

    def strike(self, number):
        """Causes a fault somewhere in the next steps, which go on meanwhile. If there are enough workers, a worker that joined has to train
        before something else can happen."""
        least = number * STEPS_A_FAULT
        self.open_gate(least)
        self.job.wait_for_version(least + self.random.randrange(1, STEPS_A_FAULT))
        wait_for(self.is_ready, 'somebody trains')
        members, trained = self.members(), self.trained()
        kinds = ['join'] * 3 if len(members) < MOST else []
        kinds += ['kill', 'kill', 'stop', 'leave', 'pre-empt'] if len(trained) > 1 else []
        kind = self.random.choice(kinds + ['coordinator'])
        self.carry_out(kind, trained)
        if self.random.random() < 0.2:
            self.wake_the_stopped()
        self.done.append(kind)

    def open_gate(self, version):
        with open(self.gate, 'ab') as file:
            file.write(bytes(max(0, version + 2 * STEPS_A_FAULT - file.tell())))

    def is_ready(self):
        """Whether a fault may be caused. Opens the gate further, because a worker that has joined needs steps to train in."""
        assert self.job.version() < self.job.steps(), \
            f'over after {len(self.done)} faults; ended well or there: {[(w.path.name, w.signalled) for w in self.job.workers if not w.process.poll()]}'
        self.open_gate(self.job.version())
        return len(self.members()) < MOST or len(self.trained()) > 1

    def carry_out(self, kind, trained):
        if kind == 'join':
            self.job.add_worker()
        elif kind == 'coordinator':
            self.job.kill_coordinator()
            self.job.start_coordinator()
        else:
            victim = self.random.choice(trained)
            self.woken.discard(victim)
            victim.send({'kill': signal.SIGKILL, 'stop': signal.SIGSTOP, 'leave': signal.SIGTERM, 'pre-empt': signal.SIGTERM}[kind])
            if kind == 'pre-empt':  # like a kubelet whose grace period ends before the worker has left
                for _ in turns(self.random.random() * 0.05):
                    pass
                victim.send(signal.SIGKILL)

    def wake_the_stopped(self):
        for worker in self.job.alive():
            if worker.signalled == signal.SIGSTOP:
                worker.process.send_signal(signal.SIGCONT)
                self.woken.add(worker)

    def end(self):
        """Lets all workers train to the end of the job."""
        self.wake_the_stopped()
        self.go.touch()

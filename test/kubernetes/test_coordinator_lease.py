"""Several coordinators of one job, with one journal: the Lease of `muster coordinator --lease`, against a real kube-apiserver. Workers are real."""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from cluster import die_with_parent
from program import BUILD, SOURCE, wait_for
from proxy import Cut, Proxy
from relay import Relay

sys.path.insert(0, str(SOURCE / 'test' / 'elastic'))
from chaos import check_ends  # noqa: E402
from job import Job  # noqa: E402

LEASE = 'zoo-coordinator'
LEASE_S, DEADLINE_S, RETRY_S = 8, 5, 1
FAULTS = 8
TERMINATED = 128 + signal.SIGTERM


class Coordinator:
    """One process, behind its own proxy; it listens at a free port each time that it begins to serve."""

    def __init__(self, team, name, *options, lease=True, journal='journal', user=None, kept=False, env=()):
        self.team, self.proxy = team, Proxy(team.cluster)
        self.path, self.ready = team.job.folder / name, team.job.folder / f'{name}.address'
        config = team.cluster.write_kubeconfig(f'{team.namespace}-{name}', self.proxy.url if user is None else team.cluster.url, user=user or {},
                                               namespace=team.namespace)
        words = [*((BUILD / 'bin/muster', 'keep', '--') if kept else ()), BUILD / 'bin/muster', 'coordinator', '--listen', 'tcp:127.0.0.1:0', '--journal', team.job.folder / journal, '--ready-file', self.ready,
                 '--durable', *(('--lease', LEASE) if lease else ()), *options]
        with open(self.path, 'wb') as log:
            self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            env={**team.job.environment, 'KUBECONFIG': str(config), **dict(env)}, preexec_fn=die_with_parent)

    def log(self):
        return self.path.read_text(errors='replace')

    def term(self):
        """Returns the term in which it served last, or 0 if it has never served."""
        return max((int(found) for found in re.findall(r'listening at .*, term (\d+)', self.log())), default=0)

    def serves_since(self, term):
        """Waits until it serves in a later term, turns the workers to it, and returns the term."""
        wait_for(lambda: self.alive() and self.term() > term, f'{self.path.name} serves: {self.log()}')
        self.team.relay.turn_to(self.address())
        return self.term()

    def address(self):
        """Returns the address where it listened last. The log has the address before the ready file."""
        return re.findall(r'listening at (\S+), journal in ', self.log())[-1]

    def alive(self):
        assert self.process.poll() is None, f'{self.process.returncode}: {self.log()}'
        return True

    def says(self, text, since=0):
        """Waits until its log has the text after the first `since` characters."""
        wait_for(lambda: text in self.log()[since:], f'it says {text!r}: {self.log()}')

    def cut_off(self):
        """Cuts it off from the API server, until `heal`."""
        self.cuts = [Cut(method, '', times=None) for method in ('GET', 'PUT', 'POST')]
        for cut in self.cuts:
            self.proxy.add(cut)

    def heal(self):
        for cut in self.cuts:
            cut.times = 0

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(60)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.end(signal.SIGKILL)
        self.proxy.close()


class Team:
    """Workers of one job, and the coordinators that may serve them."""

    def __init__(self, cluster, namespace, folder):
        self.cluster, self.namespace, self.relay, self.made = cluster, namespace, Relay(), []
        self.job = Job(folder, epochs=100, sleep_ms=20)
        self.job.environment.update(MUSTER_COORDINATOR=self.relay.address, MUSTER_TEST_GO=str(folder / 'go'))

    def add(self, name, *options, **more):
        self.made.append(Coordinator(self, name, *options, **more))
        return self.made[-1]

    def lease(self):
        return self.cluster.request('GET', f'/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{LEASE}')['spec']

    def start_two(self):
        """Starts two coordinators: the first serves, and the job trains; the second waits."""
        first = self.add('first', '--first-size', 2)
        first.serves_since(0)
        self.job.add_workers(2)
        self.job.wait_for_version(5)
        second = self.add('second', '--first-size', 2)
        second.says(f'holds lease {self.namespace}/{LEASE}; waiting')
        assert second.term() == 0
        return first, second

    def trains_on(self, steps=5):
        self.job.wait_for_version(self.job.version() + steps)

    def check_end(self, *coordinators):
        """Checks that every record was trained once in each epoch, that both workers trained to the end, and that the model is the one that the
        journal's steps make. Each remaining coordinator reports this too: a coordinator that then takes the Lease finds a job that is done."""
        (self.job.folder / 'go').touch()
        for worker in self.job.workers:
            wait_for(lambda: not worker.alive(), 'the workers end')
        for each in coordinators:
            assert each.process.wait(60) == 0, each.log()
            assert f'done: {self.job.records * self.job.epochs:,} records' in each.log()
        model = check_ends(self.job)
        assert self.job.serial()['model'] == model
        assert self.lease()['holderIdentity'] == ''

    def close(self):
        for made in self.made:
            made.close()
        for worker in self.job.workers:
            if worker.alive():
                worker.kill()
        self.relay.close()


@pytest.fixture()
def team(cluster, namespace, tmp_path):
    made = Team(cluster, namespace, tmp_path)
    yield made
    made.close()


def test_at_sigterm_the_next_one_goes_on_at_once(team):
    first, second = team.start_two()
    begin, term = time.monotonic(), first.term()
    assert first.end() == TERMINATED
    assert second.serves_since(term) > team.lease()['leaseTransitions'] >= 1
    assert time.monotonic() - begin < DEADLINE_S  # it has not waited until the Lease ran out
    team.trains_on()
    team.check_end(second)


def test_one_that_is_killed_is_replaced_when_its_lease_has_run_out(team):
    first, second = team.start_two()
    begin, term = time.monotonic(), first.term()
    first.end(signal.SIGKILL)
    team.trains_on()  # without a coordinator
    second.serves_since(term)
    assert time.monotonic() - begin > DEADLINE_S
    team.trains_on()
    team.check_end(second)


def test_one_that_is_started_again_by_its_parent_has_its_lease_still(team):
    """`muster keep` starts the coordinator again when it has ended; the new one need not wait until the Lease of the one before runs out."""
    only = team.add('first', '--first-size', 2, kept=True)
    term = only.serves_since(0)
    team.job.add_workers(2)
    team.job.wait_for_version(5)
    holder = team.lease()['holderIdentity']
    children = pathlib.Path(f'/proc/{only.process.pid}/task/{only.process.pid}/children').read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    assert only.serves_since(term) == 2
    assert (team.lease()['holderIdentity'], team.lease()['leaseTransitions']) == (holder, 0)
    team.trains_on()
    team.check_end(only)


def test_one_that_is_cut_off_serves_nobody_before_another_may(team):
    first, second = team.start_two()
    ended, term = team.relay.ended, first.term()
    first.cut_off()
    first.says('nobody is served until it is held again')
    assert second.term() == 0
    wait_for(lambda: team.relay.ended >= ended + 2, 'it has closed the connections of both workers')
    second.serves_since(term)
    team.trains_on()
    first.heal()
    first.says('; waiting until it is given up')
    team.check_end(second, first)


def test_without_another_one_it_goes_on_when_it_is_heard_again(team):
    """It serves in a later term, so that its older messages are not mistaken for new ones."""
    only = team.add('first', '--first-size', 2)
    term = only.serves_since(0)
    team.job.add_workers(2)
    team.job.wait_for_version(5)
    only.cut_off()
    only.says('nobody is served until it is held again')
    team.trains_on()
    only.heal()
    only.serves_since(term)
    team.trains_on()
    team.check_end(only)


def test_one_that_is_stopped_and_woken_decides_nothing(team):
    """As on two hosts that do not see each other's locks: a stopped coordinator wakes when another one serves, and its open files are no longer the
    journal."""
    first, second = team.start_two()
    term = first.term()
    first.process.send_signal(signal.SIGSTOP)
    (team.job.folder / 'journal/lock').unlink()
    second.serves_since(term)
    team.trains_on()
    asked = len(first.proxy.seen)
    first.process.send_signal(signal.SIGCONT)
    first.says('nobody is served until it is held again')
    first.says('; waiting until it is given up')
    assert first.term() == term and first.proxy.seen[asked][0] == 'GET'  # it reads who holds the Lease before it writes
    team.trains_on()
    team.check_end(second, first)


def test_the_lock_of_one_that_is_stopped_is_waited_for(team):
    first, second = team.start_two()
    term = first.term()
    first.process.send_signal(signal.SIGSTOP)
    second.says('has the journal in')
    second.says('; waiting until it has ended')
    assert second.term() == 0
    first.process.send_signal(signal.SIGCONT)
    second.serves_since(term)
    team.trains_on()
    team.check_end(second, first)


WITHOUT_LOCKS = """
#include <errno.h>
int flock(int fd, int operation)
{
    errno = ENOSYS;
    return -1;
}
"""


def test_a_file_system_without_locks_is_no_fault_where_a_lease_decides(team):
    """A coordinator that is stopped is not waited for, either. The log reports the missing locks once, no matter how often the journal is opened."""
    shim, source = team.job.folder / 'shim.so', team.job.folder / 'shim.c'
    source.write_text(WITHOUT_LOCKS)
    subprocess.run(['cc', '-shared', '-fPIC', '-o', shim, source], check=True)
    add = team.add
    team.add = lambda *words: add(*words, env={'LD_PRELOAD': str(shim)})
    first, second = team.start_two()
    term = first.term()
    first.process.send_signal(signal.SIGSTOP)
    second.serves_since(term)
    first.process.send_signal(signal.SIGCONT)
    first.says('the lease could not be renewed in time')
    team.trains_on()
    term = second.term()
    assert second.end() == TERMINATED
    first.serves_since(term)
    team.trains_on()
    team.check_end(first)
    for each in (first, second):
        assert each.log().count('has no locks (flock): the lease alone keeps other coordinators from the journal there') == 1, each.log()


def test_without_an_api_server_nobody_is_served(team):
    """It does not serve even the first time, and reports that once."""
    only = team.add('first', '--first-size', 2)
    only.cut_off()
    only.says('without the lease nobody new is served')
    said = len(only.log().splitlines())
    seen = len(only.proxy.seen)
    wait_for(lambda: len(only.proxy.seen) >= seen + 3, 'it asks again')
    assert only.alive() and only.term() == 0 and len(only.log().splitlines()) == said
    assert only.end() == TERMINATED


@pytest.mark.heavy
def test_faults_in_a_row(team):
    """Coordinators are killed, ended, stopped, cut off and healed at random, two of them at a time; workers are killed and added meanwhile."""
    seed = int(os.environ.get('MUSTER_SEED', time.time_ns() % 10**6))
    chance = random.Random(seed)
    print(f'MUSTER_SEED={seed}')
    team.job.epochs, team.job.sleep_ms = 600, 50
    serving, waiting = team.start_two()
    for number in range(FAULTS):
        term, what = serving.term(), chance.choice(('kill', 'end', 'stop', 'cut'))
        said = {each: len(each.log()) for each in (serving, waiting)}
        worker_dies, lock_is_seen = chance.random() < 0.5, chance.random() < 0.5
        print(f'{number}: {what} of {serving.path.name} in term {term}; a worker dies: {worker_dies}, the lock is seen: {lock_is_seen}')
        if not lock_is_seen:
            (team.job.folder / 'journal/lock').unlink()
        if what == 'cut':
            serving.cut_off()
        else:
            serving.process.send_signal({'kill': signal.SIGKILL, 'end': signal.SIGTERM, 'stop': signal.SIGSTOP}[what])
        if worker_dies:
            chance.choice(team.job.alive()).kill()
            team.job.add_worker()
        if what == 'stop' and lock_is_seen:
            waiting.says('; waiting until it has ended', said[waiting])
            serving.process.send_signal(signal.SIGCONT)
        waiting.serves_since(max(term, waiting.term()))
        team.trains_on()
        if what == 'stop' and not lock_is_seen:
            serving.process.send_signal(signal.SIGCONT)
        elif what == 'cut':
            serving.says('nobody is served until it is held again', said[serving])
            serving.heal()
        elif what in ('kill', 'end'):
            serving.process.wait(60)
            serving = team.add(f'number-{number}', '--first-size', 2)
        serving, waiting = waiting, serving
        waiting.says('; waiting until it is given up', said.get(waiting, 0))
    team.check_end(serving, waiting)


def test_workers_do_not_hear_one_of_an_older_term(team):
    """A coordinator without a Lease serves with an older copy of the journal: no worker obeys it, and the records are those of the other
    coordinator."""
    first, second = team.start_two()
    term = first.term()
    shutil.copytree(team.job.folder / 'journal', team.job.folder / 'copy')
    assert first.end() == TERMINATED
    term = second.serves_since(term)
    third = team.add('third', '--first-size', 2)
    assert second.end() == TERMINATED
    term = third.serves_since(term)
    team.trains_on()
    old = team.add('old', '--first-size', 2, lease=False, journal='copy')
    assert 0 < old.serves_since(0) < term
    ended = team.relay.ended
    wait_for(lambda: team.relay.ended >= ended + 6, 'the workers have hung up again and again')
    team.trains_on()
    team.relay.turn_to(third.address())
    team.check_end(third)


def test_a_right_that_is_missing_is_said(team):
    at = f'/api/v1/namespaces/{team.namespace}/serviceaccounts'
    team.cluster.request('POST', at, {'metadata': {'name': 'nobody'}})
    token = team.cluster.request('POST', f'{at}/nobody/token', {'spec': {'expirationSeconds': 600}})['status']['token']
    only = team.add('first', user={'token': token})
    only.says('is forbidden')
    assert only.alive() and only.term() == 0


def test_a_name_that_is_none(team):
    done = subprocess.run([BUILD / 'bin/muster', 'coordinator', '--listen', 'tcp:127.0.0.1:0', '--journal', team.job.folder / 'journal', '--lease', 'No_Name'],
                          env={**os.environ, 'MUSTER_COORDINATOR_TOKEN': '5a' * 32}, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 64 and "--lease 'No_Name'" in done.stderr

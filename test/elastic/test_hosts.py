"""Elastic jobs whose workers are on other hosts (network namespaces) than the coordinator: it can see none of their processes.

If all workers die, none is left to report it. Then only their machine's kernel shows it: the port of a dead process refuses connections.
"""
import os
import signal
import subprocess
import sys
import time

import pytest

from chaos import check_ends
from job import Job
from program import BUILD, SOURCE, turns, wait_for

sys.path.insert(0, str(SOURCE / 'bench' / 'network'))
import namespaces  # noqa: E402

SOON_S = 15  # half of the duration of a lease; a silent worker is given up after a whole one in any case
pytestmark = pytest.mark.skipif(bool(namespaces.missing()), reason=f'NOT TESTED: this needs {namespaces.missing()}')


class HostsJob(Job):
    """A job whose workers are on hosts 0 and 1 alternately; its coordinator is on host 2."""

    def __init__(self, folder, hosts, **options):
        super().__init__(folder, **options)
        self.hosts, self.cut = hosts, []
        self.address = f'tcp:{hosts.addresses[2]}:7070'
        self.environment['MUSTER_COORDINATOR'] = self.address

    def coordinator_words(self):
        return self.hosts.command(2, *super().coordinator_words())

    def host_of(self, number):
        return number % 2

    def worker_words(self, number, sleep_ms):
        host = self.host_of(number)
        words = super().worker_words(number, sleep_ms)
        return self.hosts.command(host, 'env', f'MUSTER_TEST_HOST={self.hosts.addresses[host]}', *words)

    def lose_workers(self, away):
        """Kills all workers; away: also the coordinator, which is then started again. Returns the time from which the coordinator could know
        it."""
        if away:
            self.kill_coordinator()
        self.kill_workers()
        began = time.monotonic()
        if away:
            self.start_coordinator()
        return began

    def set_link(self, host, state):
        subprocess.run(['ip', '-n', self.hosts.switch, 'link', 'set', f'port{host}', state], check=True)


class SpreadJob(HostsJob):
    """A job with a worker on each host; the host of the last worker is also that of the coordinator."""

    def host_of(self, number):
        return number

    def cut_link(self, one, other):
        """Drops all packets between two hosts, in both directions; both still reach all other hosts."""
        for here, there in ((one, other), (other, one)):
            rule = ['iptables', '-A', 'OUTPUT', '-d', self.hosts.addresses[there], '-j', 'DROP']
            subprocess.run(self.hosts.command(here, *rule), check=True)


@pytest.fixture
def hosts():
    with namespaces.Hosts(3) as made:
        yield made


class LeasedJob(HostsJob):
    """A job whose workers are shards_worker: 20 shards of 2 records. A worker waits with a shard in its hands until the test lets it go."""

    def __init__(self, folder, hosts, **options):
        super().__init__(folder, hosts, **options)
        self.program = 'shards_worker'
        os.mkfifo(folder / 'hold')

    def worker_words(self, number, stops):
        words = [str(BUILD / 'tests' / self.program), str(self.folder / f'shards-{number}'), '40', '2', '1', 'test']
        return self.hosts.command(number % 2, *words, *(['2', str(self.folder / 'hold')] if stops else []))

    def add_holder(self):
        """Adds a worker that holds a shard, and waits."""
        number = len(self.workers)
        worker = self.add_worker(sleep_ms=True)
        wait_for((self.folder / f'shards-{number}.stopped').exists, 'it holds a shard')
        return worker

    def let_go(self):
        with open(self.folder / 'hold', 'w'):
            pass


@pytest.mark.parametrize('away', [True, False])
@pytest.mark.parametrize('count', [1, 2, 3])
def test_all_workers_on_other_hosts_die(tmp_path, hosts, count, away):
    with HostsJob(tmp_path, hosts, first_size=count, sleep_ms=2, held=True) as job:
        job.add_workers(count)
        job.wait_for_version(5)
        began = job.lose_workers(away)
        newcomer = job.add_worker()
        wait_for(lambda: newcomer.version > 0, 'the newcomer trains')
        took = time.monotonic() - began
        print(f'{took:.2f} s until the newcomer trained')
        assert took < SOON_S
        assert job.wait_for_end() == 0
        check_ends(job)
        assert newcomer.steps()[0][0] == 1


def test_of_two_that_cannot_reach_each_other_the_younger_goes(tmp_path, hosts):
    """Both reach the coordinator and the third worker, with which the older one goes on."""
    with SpreadJob(tmp_path, hosts, epochs=40, sleep_ms=5, held=True) as job:
        for size in (1, 2, 3):
            job.add_worker()
            wait_for(lambda count=size: all(worker.size == count for worker in job.workers), f'{size} train')
        older, younger, third = job.workers
        job.cut_link(0, 1)
        assert younger.process.wait() == 75, job.log()
        assert 'an older member could not reach it' in job.log()
        version = older.version
        wait_for(lambda: older.version > version and older.size == third.size == 2, 'the others train on')
        job.workers.remove(younger)
        assert job.wait_for_end() == 0
        assert check_ends(job) == job.serial()['model']
        assert job.log().count('lost ') == 1 and ' 1 lost' in job.log()


def goes_on(job, worker, version):
    """Checks that the worker goes on from that version, and that no worker was lost."""
    wait_for(lambda: worker.version > version, 'it trains on')
    assert job.wait_for_end() == 0
    check_ends(job)
    assert 'lost ' not in job.log()


def test_workers_that_cannot_be_reached_are_not_given_up(tmp_path, hosts):
    """Their host is cut off while the coordinator is away and for some time after that: nothing refuses connections."""
    with HostsJob(tmp_path, hosts, sleep_ms=20) as job:
        worker = job.add_worker()
        job.wait_for_version(5)
        job.kill_coordinator()
        job.set_link(0, 'down')
        job.start_coordinator()
        wait_for(lambda: job.log().count('listening at') == 2, 'the coordinator is back')
        for _ in turns(3):
            pass
        version = worker.version
        newcomer = job.add_worker()
        job.set_link(0, 'up')
        goes_on(job, worker, version)
        assert not newcomer.steps() or newcomer.steps()[0][0] > version


def test_a_worker_that_is_stopped_while_the_coordinator_comes_back_is_not_given_up(tmp_path, hosts):
    """It is the only worker that has the model. Its kernel still accepts connections to its port."""
    with HostsJob(tmp_path, hosts, sleep_ms=20) as job:
        worker = job.add_worker()
        job.wait_for_version(5)
        worker.process.send_signal(signal.SIGSTOP)
        version = worker.version
        job.kill_coordinator()
        job.start_coordinator()
        wait_for(lambda: job.log().count('listening at') == 2, 'the coordinator is back')
        for _ in turns(3):
            pass
        worker.process.send_signal(signal.SIGCONT)
        goes_on(job, worker, version)


def test_a_worker_without_a_connection_is_not_given_up_while_it_listens(tmp_path, hosts):
    """Its connections to the coordinator are refused for some time, as by a proxy that is being restarted."""
    with HostsJob(tmp_path, hosts, sleep_ms=20) as job:
        worker = job.add_worker()
        job.wait_for_version(5)
        rule = hosts.command(2, 'iptables', 'INPUT', '-p', 'tcp', '--dport', '7070', '-j', 'REJECT', '--reject-with', 'tcp-reset')
        at = rule.index('INPUT')
        subprocess.run([*rule[:at], '-I', *rule[at:]], check=True)
        for _ in turns(3):
            pass
        version = worker.version
        subprocess.run([*rule[:at], '-D', *rule[at:]], check=True)
        goes_on(job, worker, version)


@pytest.mark.parametrize('away', [True, False])
@pytest.mark.parametrize('count', [1, 3])
def test_workers_by_leases_on_other_hosts_die(tmp_path, hosts, count, away):
    """The next worker gets the records that they held, long before their leases end; they were killed before they had reported all of them."""
    with LeasedJob(tmp_path, hosts) as job:
        for _ in range(count):
            job.add_holder()
        began = job.lose_workers(away)
        job.add_worker(sleep_ms=False)
        assert job.wait_for_end() == 0, job.log()
        took = time.monotonic() - began
        print(f'{took:.2f} s until all was done')
        assert took < SOON_S
        assert job.workers[-1].lines()[-1] == f'done 40 {sum(range(40))}'


@pytest.mark.parametrize('silent', ['stopped', 'cut off', 'refused'])
def test_a_worker_by_leases_that_lives_keeps_what_it_holds(tmp_path, hosts, silent):
    """While the coordinator comes back the worker is stopped, or its host cannot be reached; or the worker cannot reach the coordinator. In each
    case its own port refuses no connection."""
    with LeasedJob(tmp_path, hosts) as job:
        worker = job.add_holder()
        rule = hosts.command(2, 'iptables', 'INPUT', '-p', 'tcp', '--dport', '7070', '-j', 'REJECT', '--reject-with', 'tcp-reset')
        at = rule.index('INPUT')
        if silent == 'stopped':
            worker.process.send_signal(signal.SIGSTOP)
        elif silent == 'cut off':
            job.set_link(0, 'down')
        if silent == 'refused':
            subprocess.run([*rule[:at], '-I', *rule[at:]], check=True)
        else:
            job.kill_coordinator()
            job.start_coordinator()
            wait_for(lambda: job.log().count('listening at') == 2, 'the coordinator is back')
        for _ in turns(3):
            pass
        if silent == 'refused':
            subprocess.run([*rule[:at], '-D', *rule[at:]], check=True)
        job.set_link(0, 'up')
        worker.process.send_signal(signal.SIGCONT)
        job.let_go()
        assert job.wait_for_end() == 0, job.log()
        assert worker.lines()[-1] == f'done 40 {sum(range(40))}', worker.lines()

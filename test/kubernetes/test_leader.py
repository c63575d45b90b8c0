"""Several operators, one of which works: the Lease of `muster operator --leader-elect`, against a real kube-apiserver."""
import os
import signal
import time

import pytest

from jobs import Jobs, Operator
from program import wait_for
from proxy import Cut, Proxy

LEASE = 'muster-operator'
LEASE_S, DEADLINE_S, RETRY_S = 8, 5, 1
LOST = 69
# How many times each way to lose a leader is tried; the test prints the times.
TIMES = int(os.environ.get('MUSTER_FAILOVERS', 1))


class Pair:
    """Operators of one namespace that share a Lease, each behind its own proxy."""

    def __init__(self, cluster, jobs):
        self.cluster, self.jobs, self.made = cluster, jobs, []

    def add(self):
        proxy = Proxy(self.cluster)
        config = self.cluster.write_kubeconfig(f'{self.jobs.namespace}-{len(self.made)}', proxy.url, user={}, namespace=self.jobs.namespace)
        operator = Operator(config, '--namespace', self.jobs.namespace, '--leader-elect').start().wait_ready()
        self.made.append((operator, proxy))
        return operator, proxy

    def lease(self):
        at = f'/apis/coordination.k8s.io/v1/namespaces/{self.jobs.namespace}/leases/{LEASE}'
        return self.cluster.request('GET', at)['spec']

    def close(self):
        for operator, proxy in self.made:
            operator.close()
            proxy.close()


@pytest.fixture()
def pair(cluster, served, namespace):
    made = Pair(cluster, Jobs(cluster, namespace))
    yield made
    made.close()


def leads(operator):
    return operator.said('operator.leads')


def takes_over(pair, other, begin, number):
    """Returns the seconds until the other operator leads; it must then create a job's pods."""
    wait_for(lambda: leads(other), 'the other one leads')
    took = time.monotonic() - begin
    pair.jobs.create(f'after-{number}')
    pair.jobs.wait_pods(f'after-{number}', 2)
    return took


def start_two(pair):
    """Returns (leader, its proxy, the other operator)."""
    first, proxy = pair.add()
    wait_for(lambda: leads(first), 'the first one leads')
    second, _ = pair.add()
    return first, proxy, second


def test_one_works_and_the_other_is_ready(pair):
    first, _, second = start_two(pair)
    pair.jobs.create('a')
    pair.jobs.wait_pods('a', 2)
    status = f'leader_election_master_status{{name="{LEASE}"}}'
    assert (first.metrics()[status], second.metrics()[status]) == (1, 0)
    assert second.health('/readyz') == 200 and not leads(second) and not second.said('operator.create')
    lease = pair.lease()
    assert lease['holderIdentity'] in leads(first)['message'] and lease['leaseDurationSeconds'] == LEASE_S
    wait_for(lambda: pair.lease()['renewTime'] > lease['renewTime'], 'it is renewed')
    assert pair.lease()['acquireTime'] == lease['acquireTime']


def test_at_sigterm_the_lease_is_given_up(pair):
    first, _, second = start_two(pair)
    begin = time.monotonic()
    assert first.end(signal.SIGTERM) == 0
    wait_for(lambda: leads(second), 'the other one leads')
    assert time.monotonic() - begin < DEADLINE_S  # it has not waited until the Lease ran out
    assert pair.lease()['leaseTransitions'] >= 1
    assert second.end() == 0 and pair.lease()['holderIdentity'] == ''


@pytest.mark.parametrize('number', range(TIMES))
def test_the_leader_is_killed(pair, number):
    first, _, second = start_two(pair)
    begin = time.monotonic()
    first.end(signal.SIGKILL)
    took = takes_over(pair, second, begin, number)
    print(f'killed: {took:.1f} s')
    assert DEADLINE_S < took < 15


@pytest.mark.parametrize('number', range(TIMES))
def test_a_woken_leader_sends_nothing(pair, number):
    """The leader is stopped while it works on jobs, and wakes when the other operator leads."""
    first, proxy, second = start_two(pair)
    for job in range(5):
        pair.jobs.create(f'job-{job}', workers=3)
    begin = time.monotonic()
    first.process.send_signal(signal.SIGSTOP)
    took = takes_over(pair, second, begin, number)
    pair.jobs.wait_pods('job-4', 4)
    asked = len(proxy.seen)
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(60) == LOST
    assert first.said('operator.end', 'lease')
    assert proxy.seen[asked:] == []
    print(f'stopped: {took:.1f} s')
    assert took < 15


@pytest.mark.parametrize('number', range(TIMES))
def test_a_leader_that_is_cut_off_ends(pair, number):
    """It ends before another operator may begin."""
    first, proxy, second = start_two(pair)
    begin = time.monotonic()
    for method in ('GET', 'PUT', 'POST', 'PATCH', 'DELETE'):
        proxy.add(Cut(method, '', times=None))
    assert first.process.wait(60) == LOST
    ended = time.monotonic() - begin
    assert not leads(second)
    took = takes_over(pair, second, begin, number)
    print(f'cut off: ended after {ended:.1f} s, taken over after {took:.1f} s')
    assert ended < LEASE_S and took < 15

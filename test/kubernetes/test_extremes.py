"""`muster operator` at the limits of a cluster: etcd is full, names have the maximum length, all pods are deleted at once, pods that have
ended are collected."""
import concurrent.futures
import json
import os
import urllib.request

import pytest

from cluster import HOST
from jobs import LABEL
from program import LIMIT_S, wait_for

# How many pods are deleted at once; by hand 10,000.
PODS = int(os.environ.get('MUSTER_PODS_GONE', 200))
WORKERS, SIDE_BY_SIDE = 19, 8


@pytest.fixture()
def operator(cluster, jobs, operators):
    return operators(cluster.kubeconfig, '--namespace', jobs.namespace, '--kube-api-qps=1000', '--kube-api-burst=1000')


def etcd(cluster, path, **body):
    asked = urllib.request.Request(f'http://{HOST}:{cluster.etcd_port}/v3/{path}', json.dumps(body).encode(), method='POST')
    with urllib.request.urlopen(asked, timeout=LIMIT_S) as answer:
        return json.loads(answer.read())


@pytest.fixture()
def full(cluster):
    """Returns a function that sets etcd's alarm NOSPACE, with which etcd refuses every write, or clears it."""
    member = etcd(cluster, 'cluster/member/list')['members'][0]['ID']

    def call(is_full):
        etcd(cluster, 'maintenance/alarm', action='ACTIVATE' if is_full else 'DEACTIVATE', memberID=member, alarm='NOSPACE')
    yield call
    call(False)


def test_a_full_etcd_is_said_and_waited_for(jobs, operator, full):
    """The job's first write is refused, and the log has the server's reason; the write is tried again at growing intervals, and nothing is created
    twice."""
    jobs.create('a', workers=2)
    full(True)
    operator.start().wait_ready()
    wait_for(lambda: any('space exceeded' in line['message'] for line in operator.lines()), 'it is said why')
    assert not jobs.list('pods') and 'status' not in jobs.get('a')
    full(False)
    assert list(jobs.wait_pods('a', 3)) == ['a-master-0', 'a-worker-0', 'a-worker-1']
    jobs.set_phases('a', 'Running')
    jobs.wait_condition('a', 'Running')
    assert len([line for line in operator.lines() if line['event'] == 'operator.create' and 'pod' in line['message']]) == 3


@pytest.mark.parametrize('workers, fits', [(1, 54), (11, 53)])
def test_names_of_63_characters(jobs, operator, workers, fits):
    """The name of the last pod has 63 characters; a job whose name has one more is too long for its Service, and this is reported before anything is
    created."""
    operator.start().wait_ready()
    jobs.create('n' * fits, workers=workers)
    jobs.create('m' * (fits + 1), workers=workers)
    pods = jobs.wait_pods('n' * fits, 1 + workers)
    assert max(len(name) for name in pods) == 63
    assert 'too long' in jobs.wait_condition('m' * (fits + 1), 'Stalled')['message']
    assert not jobs.list('pods', 'm' * (fits + 1))


def test_all_pods_are_deleted_at_once(jobs, operator):
    """Each pod is created again once, and counted once, whether the answer to its creation arrived or came too late; the jobs continue."""
    operator.start().wait_ready()
    names = [f'job-{number}' for number in range(PODS // (WORKERS + 1))]
    for name in names:
        jobs.create(name, workers=WORKERS)

    def uids():
        return {name: pod['metadata']['uid'] for name, pod in jobs.list('pods').items()}
    count = len(names) * (WORKERS + 1)
    wait_for(lambda: len(uids()) == count, 'all pods', 4 * LIMIT_S)
    before = uids()
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:  # one request for all takes longer than an API server allows
        list(pool.map(lambda name: jobs.cluster.request('DELETE', f'{jobs.at("pods")}?labelSelector={LABEL}job-name={name}', {'gracePeriodSeconds': 0}), names))
    wait_for(lambda: len(uids()) == count and not set(uids().values()) & set(before.values()), 'all are made again', 4 * LIMIT_S)
    wait_for(lambda: operator.metrics()['created_pods_total'] >= 2 * count, 'the last answer is counted')
    assert operator.metrics()['created_pods_total'] == 2 * count
    assert not [name for name in names if 'Failed' in jobs.conditions(name)]


def test_finished_pods_that_are_collected(jobs, operator):
    """Pods are deleted by force and without a message to their owner, as Kubernetes' pod garbage collection does it. A job that is over keeps its end
    and its counts, also for an operator that starts later; a running job continues, and its rank is created again.
    """
    operator.start().wait_ready()
    jobs.create('over', workers=2)
    jobs.wait_pods('over', 3)
    jobs.set_phases('over', 'Succeeded', 0)
    jobs.wait_condition('over', 'Succeeded')
    wait_for(lambda: jobs.get('over')['status']['replicaStatuses']['Worker'].get('succeeded') == 2, 'both workers are counted')
    end = jobs.get('over')['status']
    for name in jobs.list('pods', 'over'):
        jobs.delete(name, 'pods')
    jobs.create('runs', workers=2)
    jobs.wait_pods('runs', 3)
    jobs.set_phases('runs', 'Running')
    jobs.set_phase('runs-worker-1', 'Succeeded', 0)
    wait_for(lambda: jobs.get('runs')['status']['replicaStatuses']['Worker'].get('succeeded') == 1, 'the worker is counted')
    uid = jobs.get('runs-worker-1', 'pods')['metadata']['uid']
    jobs.delete('runs-worker-1', 'pods')
    wait_for(lambda: (jobs.get('runs-worker-1', 'pods') or {'metadata': {'uid': uid}})['metadata']['uid'] != uid, 'it is made again')
    assert operator.end() == 0
    operator.start().wait_ready()
    jobs.set_phases('runs', 'Succeeded', 0)
    jobs.wait_condition('runs', 'Succeeded')
    assert jobs.get('runs')['status'].get('counters', {}).get('failures', 0) == 0
    assert jobs.get('over')['status'] == end and not jobs.list('pods', 'over')

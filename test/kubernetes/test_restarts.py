"""`muster operator` over restarts of the servers behind it: etcd, the API server, and both, killed while jobs are created; and a history that etcd
has compacted. The test then reads from etcd which objects were created, and how often.
"""
import collections
import random
import time

import pytest

from cluster import Cluster
from follower import STORED, Follower
from jobs import Jobs, install
from program import wait_for
from proxy import Hold, Proxy
from test_extremes import etcd

# The API server never compacts etcd by itself, so that the test can read the whole history at the end.
OPTIONS = {**STORED, 'etcd-compaction-interval': '0'}
ROUNDS, EACH, WORKERS, UNDER_WAY_S = 2, 3, 2, 0.4
RANKS = ('master-0', *(f'worker-{at}' for at in range(WORKERS)))
KEYS = {'pods': 'pods', 'services': 'services/specs'}
LISTED = ('pods', 'pytorchjobs', 'services')


@pytest.fixture()
def own():
    with Cluster(**OPTIONS) as running:
        install(running)
        yield running


@pytest.fixture()
def jobs(own):
    return Jobs(own, own.namespace('restarts'))


def restart(cluster, *names):
    """Kills the programs together, and starts them with the same data."""
    for name in names:
        cluster.stop(name)
    for name in sorted(names):  # etcd is started first
        cluster.start_etcd() if name == 'etcd' else cluster.start_server()
    wait_for(cluster.is_ready, 'the API server is ready')


def history(jobs, kind):
    """Returns {name: how often it was created}, from all writes since the cluster's beginning. It creates an object `last`: when that has arrived,
    all others have arrived, too."""
    made = collections.Counter()
    last = {'pods': {'containers': [{'name': 'last', 'image': 'none'}]}, 'services': {'ports': [{'port': 80}]}}[kind]

    def on_event(event, found):
        made[found['metadata']['name']] += event == 'ADDED'
    follower = Follower(jobs.cluster, KEYS[kind], jobs.namespace, on_event, since=1)
    jobs.cluster.request('POST', jobs.at(kind), {'metadata': {'name': 'last'}, 'spec': last})
    wait_for(lambda: follower.check() or made['last'], 'the last one has come')
    follower.close()
    del made['last']
    return dict(made)


def told(jobs, name):
    """Returns {message of an event: how often}."""
    return {event['message']: event['count'] for event in jobs.events(name)}


@pytest.mark.parametrize('names', [['etcd'], ['kube-apiserver'], ['etcd', 'kube-apiserver']], ids=' and '.join)
def test_they_are_killed_while_jobs_are_made(own, jobs, operators, names):
    """The kill comes at any moment. All jobs get their pods and Services, each once; the status follows the pods, and the operator survives."""
    seed = random.randrange(1 << 32)
    print(f'seed {seed}')
    chance = random.Random(seed)
    operator = operators(own.kubeconfig, '--namespace', jobs.namespace).start().wait_ready()
    every = [f'job-{number}' for number in range(ROUNDS * EACH)]
    for at in range(0, len(every), EACH):
        for name in every[at:at + EACH]:
            jobs.create(name, workers=WORKERS, policy='ExitCode')
        until = time.monotonic() + chance.uniform(0, UNDER_WAY_S)
        wait_for(lambda: time.monotonic() >= until, 'some of it is done')
        restart(own, *names)
        for name in every[at:at + EACH]:
            jobs.wait_pods(name, 1 + WORKERS)
            jobs.set_phases(name, 'Running')
    for name in every:
        jobs.wait_condition(name, 'Running')
        jobs.set_phase(f'{name}-master-0', 'Succeeded', 0)
    for name in every:
        jobs.wait_condition(name, 'Succeeded')
        wait_for(lambda: jobs.get(name)['status']['replicaStatuses']['Worker'].get('active') == WORKERS, 'the workers are counted')
        assert jobs.get(name)['status'].get('counters', {}).get('failures', 0) == 0
        # A creation may fail more than once.
        assert {count for message, count in told(jobs, name).items() if not message.startswith('Error creating')} == {1}
    once = {f'{name}-{rank}': 1 for name in every for rank in RANKS}
    assert history(jobs, 'pods') == history(jobs, 'services') == once
    assert operator.end() == 0


def test_what_etcd_has_forgotten_is_listed_anew(own, jobs, operators):
    """While the operator's watches were held, pods failed and were deleted, and jobs were created, ended and deleted; etcd was compacted, and both
    programs were killed."""
    proxy = Proxy(own)
    try:
        config = own.write_kubeconfig('through', proxy.url, user={})
        operator = operators(config, '--namespace', jobs.namespace).start().wait_ready()
        for name in ('lives', 'ends', 'goes'):
            jobs.create(name, workers=WORKERS, policy='ExitCode')
            jobs.wait_pods(name, 1 + WORKERS)
            jobs.set_phases(name, 'Running')
            jobs.wait_condition(name, 'Running')
        made = collections.Counter()
        pods = Follower(own, 'pods', jobs.namespace, lambda event, pod: made.update([pod['metadata']['name']] if event == 'ADDED' else []), since=1)
        listed = {kind: proxy.count('GET', f'/{kind}[?].*sendInitialEvents') for kind in LISTED}
        back = proxy.add(Hold('GET', 'watch=true', times=None))
        proxy.cut_watches()
        jobs.set_phase('lives-worker-0', 'Failed', 137)
        jobs.delete('lives-worker-1', 'pods')
        jobs.set_phase('ends-master-0', 'Succeeded', 0)
        jobs.delete('goes')
        jobs.create('comes', workers=WORKERS)
        wait_for(lambda: len(made) == 9, 'all pods so far are told of')
        pods.close()
        assert sorted(made.values()) == [1] * 9
        now = jobs.cluster.request('GET', jobs.at('jobs'))['metadata']['resourceVersion']
        etcd(own, 'kv/compaction', revision=now, physical=True)
        restart(own, 'etcd', 'kube-apiserver')
        began = Follower(own, 'pods', jobs.namespace, lambda event, pod: made.update([pod['metadata']['name']] if event == 'ADDED' else []))
        back.release.set()
        jobs.wait_pods('comes', 1 + WORKERS)
        jobs.wait_condition('ends', 'Succeeded')
        wait_for(lambda: made['lives-worker-0'] == made['lives-worker-1'] == 2, 'both are made again')
        jobs.set_phases('lives', 'Running')
        wait_for(lambda: jobs.get('lives')['status']['replicaStatuses']['Worker'].get('active') == WORKERS, 'they are counted')
        assert jobs.get('lives')['status']['counters']['failures'] == 1  # the pod that was deleted is not counted as failed
        wait_for(lambda: operator.metrics()['muster_operator_live_jobs'] == 2, 'nothing is under way')
        began.close()
        again = {name for name, count in made.items() if count > 1}
        assert again == {'lives-worker-0', 'lives-worker-1'} and jobs.get('goes') is None
        for kind, count in listed.items():
            assert proxy.count('GET', f'/{kind}[?].*sendInitialEvents') > count, f'{kind} were not listed anew'
        assert operator.end() == 0
    finally:
        proxy.close()

"""Two operators that do not know of each other, on the same jobs: nothing is created, counted or ended twice, they do not react to each other for
ever, and they report each other when they can detect it.
"""
import json
import time
import urllib.error

import pytest

import upstream
from cluster import Cluster
from jobs import Jobs, Operator, install
from program import wait_for
from proxy import Hold, Proxy, Refuse


@pytest.fixture(scope='module')
def own():
    """A cluster for this file alone."""
    with Cluster() as running:
        install(running)
        yield running


@pytest.fixture()
def blind(own):
    """A proxy for an operator that may read neither webhooks nor Deployments."""
    proxy = Proxy(own)
    for path in ('/validatingwebhookconfigurations', '/deployments/'):
        proxy.add(Refuse('GET', path, status=403, reason='Forbidden', times=None))
    proxy.config = own.write_kubeconfig('blind', proxy.url, user={})
    yield proxy
    proxy.close()


def version_of(jobs):
    """Returns the version of the pods' list, from which `news` begins."""
    return jobs.cluster.request('GET', jobs.at('pods'))['metadata']['resourceVersion']


def news(jobs, version, kind):
    """Returns the pods that were created (ADDED) or deleted (DELETED) since the version, with their state at that time."""
    lines = jobs.cluster.request('GET', jobs.at('pods') + f'?watch=true&resourceVersion={version}&timeoutSeconds=1', raw=True).splitlines()
    return [said['object'] for said in map(json.loads, lines) if said['type'] == kind]


def names(pods):
    return sorted(pod['metadata']['name'] for pod in pods)


def deleted_by_name(jobs, version, proxy):
    """Returns the pods that had not failed when the training-operator deleted them: it gives no uid, so that it may delete the next pod of that name
    instead of the failed one. Muster, behind the proxy, must not have deleted any of them.
    """
    asked = {body['preconditions']['uid'] for method, path, body in proxy.bodies if method == 'DELETE' and '/pods/' in path}
    alive = [pod for pod in news(jobs, version, 'DELETED') if pod['status']['phase'] != 'Failed']
    assert not [pod for pod in alive if pod['metadata']['uid'] in asked], alive
    return alive


def wait_made_again(jobs, name, before):
    """Waits until the pod has another uid, and returns it."""
    return wait_for(lambda: next((pod['metadata']['uid'] for pod in [jobs.get(name, 'pods')] if pod and pod['metadata']['uid'] != before), None),
                    f'{name} is made again')


def begin(jobs, name):
    """Creates a job, kills a worker when all pods run, and returns that worker's uid."""
    jobs.create(name, workers=2, policy='ExitCode')
    before = jobs.wait_pods(name, 3)[f'{name}-worker-0']['metadata']['uid']
    jobs.set_phases(name, 'Running')
    jobs.wait_condition(name, 'Running')
    jobs.set_phase(f'{name}-worker-0', 'Failed', 137)
    return before


def all_run(jobs, name):
    """Sets the job's pods to Running. Returns False if one was deleted meanwhile."""
    try:
        jobs.set_phases(name, 'Running')
    except urllib.error.HTTPError as refused:
        assert refused.code == 404, refused
        return False
    return len(jobs.list('pods', name)) == 3


def end(jobs, name):
    """Ends the job: the master succeeds while the workers continue to run."""
    wait_for(lambda: all_run(jobs, name), f'all pods of {name} run')
    jobs.set_phase(f'{name}-master-0', 'Succeeded', 0)
    jobs.wait_condition(name, 'Succeeded')


def live(jobs, name):
    """Plays the life of a job: a worker is killed once and created again, the master succeeds."""
    wait_made_again(jobs, f'{name}-worker-0', begin(jobs, name))
    end(jobs, name)


def check(jobs, version, beside=lambda: []):
    """Checks that nobody writes the first job any more after the second job's life, and that each pod was created once, and the killed one twice.
    `beside` returns the pods that the other operator deleted while they were alive; they are created again.
    """
    live(jobs, 'a')
    wait_for(lambda: 'active' not in jobs.get('a')['status']['replicaStatuses']['Master'], 'its last counts')
    live(jobs, 'b')
    writes = jobs.get('a')['metadata']['resourceVersion']
    live(jobs, 'c')
    assert jobs.get('a')['metadata']['resourceVersion'] == writes, jobs.get('a')['status']
    expected = [f'{name}-{rank}' for name in 'abc' for rank in ('master-0', 'worker-0', 'worker-0', 'worker-1')]
    assert names(news(jobs, version, 'ADDED')) == sorted(expected + names(beside()))


def test_one_of_all_namespaces_and_one_of_this(own):
    """Both are muster's, without --leader-elect."""
    jobs = Jobs(own, own.namespace('pair'))
    both = [Operator(own.kubeconfig), Operator(own.kubeconfig, '--namespace', jobs.namespace)]
    try:
        for operator in both:
            operator.start().wait_ready()
        check(jobs, version_of(jobs))
        assert jobs.get('a')['status']['counters']['failures'] == 1
        assert [operator.end() for operator in both] == [0, 0]
    finally:
        for operator in both:
            operator.close()


@pytest.fixture()
def slow(own):
    """A proxy by which a test delays the training-operator."""
    proxy = Proxy(own)
    proxy.config = own.write_kubeconfig('slow', proxy.url, user={})
    yield proxy
    proxy.close()


def test_beside_the_training_operator(own, blind):
    """The training-operator counts active pods of a finished job as succeeded, and adds them to the count each time."""
    jobs = Jobs(own, own.namespace('mixed'))
    ours, peer = Operator(blind.config, '--namespace', jobs.namespace), upstream.Upstream(own, own.kubeconfig)
    try:
        ours.start().wait_ready()
        peer.start().wait_ready()
        version = version_of(jobs)
        check(jobs, version, lambda: deleted_by_name(jobs, version, blind))
        assert ours.end() == 0
    finally:
        ours.close()
        peer.close()


def written(jobs, name, manager):
    """Returns when that manager last wrote the job's status, according to the API server, or '' if it never did."""
    entries = jobs.get(name)['metadata']['managedFields']
    return max((entry['time'] for entry in entries if entry['manager'] == manager and entry.get('subresource') == 'status'), default='')


def test_it_is_said_who_else_writes(own, blind, slow):
    """It is reported once, after the other operator has written in a later second than muster."""
    jobs = Jobs(own, own.namespace('said'))
    ours, peer = Operator(blind.config, '--namespace', jobs.namespace), upstream.Upstream(own, slow.config)
    status = '/pytorchjobs/a/status'
    try:
        ours.start().wait_ready()
        peer.start().wait_ready()
        jobs.create('a', workers=2)
        jobs.wait_pods('a', 3)
        jobs.set_phases('a', 'Running')
        jobs.wait_condition('a', 'Running')
        before = wait_for(lambda: written(jobs, 'a', 'muster'), 'ours has written')
        wait_for(lambda: time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()) > before, 'the next second')
        late = blind.add(Hold('PUT', status))
        jobs.set_phase('a-worker-1', 'Succeeded', 0)
        wait_for(lambda: written(jobs, 'a', 'training-operator') > written(jobs, 'a', 'muster'), 'the other one has written')
        late.release.set()
        late = slow.add(Hold('PUT', status))
        jobs.set_phase('a-master-0', 'Succeeded', 0)
        said = wait_for(lambda: ours.said('operator.other'), 'it is said')
        late.release.set()
        assert "'training-operator' writes the status of this job, too" in said['message']
        jobs.wait_condition('a', 'Succeeded')
        live(jobs, 'b')
        assert len([line for line in ours.lines() if line['event'] == 'operator.other']) == 1
        assert ours.end() == 0
    finally:
        ours.close()
        peer.close()


def test_the_training_operator_deletes_what_it_did_not_mean(own, blind, slow):
    """The training-operator deletes a failed pod late and by its name, and so deletes the next pod of that name. The pod is created again, and the
    job continues."""
    jobs = Jobs(own, own.namespace('late'))
    late = slow.add(Hold('DELETE', '/pods/a-worker-0'))
    ours = Operator(blind.config, '--namespace', jobs.namespace)
    peer = upstream.Upstream(own, slow.config)
    try:
        ours.start().wait_ready()
        peer.start().wait_ready()
        version = version_of(jobs)
        failed = begin(jobs, 'a')
        wait_for(late.held.is_set, 'the training-operator is about to delete it')
        second = wait_made_again(jobs, 'a-worker-0', failed)
        late.release.set()
        wait_made_again(jobs, 'a-worker-0', second)
        end(jobs, 'a')
        assert [pod['metadata']['uid'] for pod in deleted_by_name(jobs, version, blind)] == [second]
        assert names(news(jobs, version, 'ADDED')) == ['a-master-0', *3 * ['a-worker-0'], 'a-worker-1']
        assert ours.end() == 0
    finally:
        ours.close()
        peer.close()

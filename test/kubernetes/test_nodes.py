"""Lost nodes, on a real API server: which pods `muster operator` replaces, by force, and which it does not. No kubelet runs: the test writes what a
kubelet would report, or stops doing that.
"""
import re
import shlex

import pytest

from jobs import MERGE
from program import SOURCE, wait_for
from test_deploy import Kubectl

NODES = '/api/v1/nodes'
OUT_OF_SERVICE = {'key': 'node.kubernetes.io/out-of-service', 'value': 'nodeshutdown', 'effect': 'NoExecute'}


@pytest.fixture()
def start(cluster, jobs, operators):
    """Returns a function that starts an operator for the namespace."""
    return lambda *options: operators(cluster.kubeconfig, '--namespace', jobs.namespace, *options).start().wait_ready()


@pytest.fixture()
def nodes(cluster, namespace):
    made = []

    def make(name='node', exact=False):
        made.append(Node(cluster, name if exact else f'{name}-{namespace}'))
        return made[-1]
    yield make
    for node in made:
        node.delete()


@pytest.fixture()
def node(nodes):
    return nodes()


class Node:
    def __init__(self, cluster, name):
        self.cluster, self.name, self.moment = cluster, name, 0
        cluster.request('POST', NODES, {'metadata': {'name': name}})
        self.says('True')

    def says(self, ready):
        """Sets the condition Ready: True, False, or Unknown, which a controller sets when the kubelet is silent."""
        self.moment += 1
        condition = {'type': 'Ready', 'status': ready, 'lastTransitionTime': f'2026-01-01T00:00:{self.moment:02}Z'}
        self.cluster.request('PATCH', f'{NODES}/{self.name}/status', {'status': {'conditions': [condition]}}, MERGE)

    def taint(self):
        self.cluster.request('PATCH', f'{NODES}/{self.name}', {'spec': {'taints': [OUT_OF_SERVICE]}}, MERGE)

    def delete(self):
        self.cluster.request('DELETE', f'{NODES}/{self.name}')


def run_on(jobs, node, name):
    """Creates a job whose worker runs on the node; returns the worker's uid."""
    jobs.create(name, policy='Never')
    jobs.wait_pods(name, 2)
    worker = f'{name}-worker-0'
    jobs.cluster.request('POST', jobs.at('pods', worker) + '/binding', {'metadata': {'name': worker}, 'target': {'kind': 'Node', 'name': node.name}})
    jobs.set_phases(name, 'Running')
    jobs.wait_condition(name, 'Running')
    return jobs.get(worker, 'pods')['metadata']['uid']


def wait_replaced(jobs, name, uid):
    def is_new():
        pod = jobs.get(f'{name}-worker-0', 'pods')
        return pod and pod['metadata']['uid'] != uid
    wait_for(is_new, 'the worker is made again')


def uid_of(jobs, name):
    return jobs.get(f'{name}-worker-0', 'pods')['metadata']['uid']


def test_a_node_that_is_silent_for_its_time_loses_its_pods(jobs, node, start):
    """This includes a pod that is being deleted: no kubelet will report its end. No failure is counted, and the event gives the reason."""
    start('--lost-nodes=2')
    uid = run_on(jobs, node, 'a')
    jobs.cluster.request('DELETE', jobs.at('pods', 'a-worker-0'))
    assert jobs.get('a-worker-0', 'pods')['metadata']['deletionTimestamp']
    node.says('Unknown')
    wait_replaced(jobs, 'a', uid)
    lost = wait_for(lambda: [e for e in jobs.events('a') if e['reason'] == 'NodeLost'], 'the event')
    assert len(lost) == 1 and lost[0]['type'] == 'Warning'
    assert lost[0]['message'] == f'Deleted pod: a-worker-0, whose node {node.name} has not answered for 2 s'
    assert 'failures' not in jobs.get('a')['status'].get('counters', {}) and 'Failed' not in jobs.conditions('a')


def test_a_node_out_of_service_loses_its_pods(cluster, jobs, nodes, start):
    """The test uses the command of docs/operator.md."""
    command = shlex.split(re.search(r'^kubectl (taint nodes .*)', (SOURCE / 'docs/operator.md').read_text(), re.M)[1])
    node = nodes(command[2], exact=True)
    start('--lost-nodes=tainted')
    uid = run_on(jobs, node, 'a')
    node.says('Unknown')
    Kubectl(cluster.kubeconfig)(*command)
    wait_replaced(jobs, 'a', uid)
    assert any('out of service' in e['message'] for e in wait_for(lambda: jobs.events('a'), 'events'))


def test_nodes_that_answer_keep_theirs(jobs, nodes, start):
    """A node that is back before its time, a node that is not ready, and a ready node with the taint keep their pods."""
    start('--lost-nodes=3')
    back, unready, tainted, lost = nodes('back'), nodes('unready'), nodes('tainted'), nodes('lost')
    before = {node: run_on(jobs, node, node.name) for node in (back, unready, tainted, lost)}
    back.says('Unknown')
    unready.says('False')
    tainted.taint()
    back.says('True')
    lost.says('Unknown')
    wait_replaced(jobs, lost.name, before.pop(lost))
    for node, uid in before.items():
        assert uid_of(jobs, node.name) == uid


def test_by_default_nodes_are_not_looked_at(jobs, node, start, cluster):
    """Therefore a namespaced operator needs no right to read nodes."""
    running = start()
    uid = run_on(jobs, node, 'a')
    node.taint()
    node.says('Unknown')
    jobs.create('b')
    jobs.wait_pods('b', 2)
    assert uid_of(jobs, 'a') == uid and not running.said('controller.watch')

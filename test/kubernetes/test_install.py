"""deploy/ on a node, installed by the commands of docs/deploy.md: an upgrade while jobs run, an exchange of pods while jobs are created, a
leader that is killed, another overlay, and the removal.
"""
import json
import os
import signal

import pytest

import node
from kubectl import Kubectl
from node_fixtures import cluster  # noqa: F401 (fixtures)
from node_jobs import create, find_pods, get_job, install_operator, job, main_process, rank, wait_end, wait_operator
from pages import read_commands, type_line
from program import wait_for
from repeated import Repeated

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(node.missing() is not None, reason=str(node.missing()))]
PODS = '/api/v1/namespaces/muster-system/pods'
LEASE = '/apis/coordination.k8s.io/v1/namespaces/muster-system/leases/muster-operator'
STAY = ('sh', '-c', 'trap "exit 0" TERM; while :; do sleep 1 & wait; done')


@pytest.fixture(scope='module')
def kubectl(cluster):
    return Kubectl(cluster.kubeconfig)


def uids(cluster, job):
    return {pod['metadata']['name']: pod['metadata']['uid'] for pod in find_pods(cluster, job)}


def wait_running(cluster, name, count):
    wait_for(lambda: [p['status']['phase'] for p in find_pods(cluster, name)] == ['Running'] * count, f'{name}: {count} pods run')


def older(objects):
    """Changes the objects to those of an older version: a definition without elasticPolicy and counters, and an operator with another flag and
    without an update strategy."""
    version = objects['CustomResourceDefinition', 'pytorchjobs.kubeflow.org']['spec']['versions'][0]['schema']['openAPIV3Schema']['properties']
    del version['spec']['properties']['elasticPolicy'], version['status']['properties']['counters']
    spec = objects['Deployment', 'muster-operator']['spec']
    spec['template']['spec']['containers'][0]['args'].append('--zap-log-level=debug')
    del spec['strategy']


def test_an_upgrade_while_jobs_run(cluster, kubectl):
    """An older version is upgraded: pods continue, jobs that it stored are read, and there are never two operators at once."""
    install_operator(cluster, kubectl, change=older)
    create(kubectl, 'ended', Master=rank(1, 'true'))
    assert wait_end(cluster, kubectl, 'ended') == 'Succeeded'
    create(kubectl, 'runs', Master=rank(1, *STAY), Worker=rank(1, *STAY))
    wait_running(cluster, 'runs', 2)
    before = uids(cluster, 'runs')

    def operators():
        return len([pod for pod in cluster.request('GET', PODS)['items'] if 'deletionTimestamp' not in pod['metadata']])
    with Repeated(operators) as asked:
        install_operator(cluster, kubectl)
    assert max(asked.answers) == 1 and len(asked.answers) > 10
    assert uids(cluster, 'runs') == before and get_job(cluster, 'ended')['status']['conditions'][-1]['type'] == 'Succeeded'
    assert 'counters' in str(cluster.request('GET', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchjobs.kubeflow.org'))
    kubectl('delete', 'pod', 'runs-worker-0')
    wait_for(lambda: uids(cluster, 'runs').get('runs-worker-0', before['runs-worker-0']) != before['runs-worker-0'], 'the new one works')
    kubectl('delete', 'pytorchjob', 'ended', 'runs')


def test_pods_with_webhooks_are_exchanged_and_no_request_fails(cluster, kubectl):
    """Jobs are created all the time, one after the other, in dry runs."""
    install_operator(cluster, kubectl, overlay='webhook', replicas=2)
    text = json.dumps(job('as-if', Master=rank(1, 'true')))
    wait_for(lambda: kubectl.attempt('create', '--dry-run=server', '-f', '-', text=text).returncode == 0, 'webhooks are asked')
    with Repeated(lambda: kubectl.attempt('create', '--dry-run=server', '-f', '-', text=text).stderr) as asked:
        for _ in range(3):
            kubectl('rollout', 'restart', '-n', 'muster-system', 'deployment/muster-operator')
            wait_operator(cluster, kubectl, replicas=2)
    failed = [said for said in asked.answers if 'failed calling webhook' in said]
    assert failed == [] and len(asked.answers) > 20


def leader(cluster):
    """Returns the name of the pod that leads."""
    return cluster.request('GET', LEASE)['spec']['holderIdentity'].partition('_')[0]


def test_a_leader_is_killed(cluster, kubectl):
    """The leader's process is killed, and the other operator takes over. Requests to the dead pod fail until the nodes notice; clients send them
    again."""
    install_operator(cluster, kubectl, overlay='webhook', replicas=2)
    first = wait_for(lambda: leader(cluster), 'one leads')
    os.kill(main_process(cluster, first, 'muster-system'), signal.SIGKILL)
    text = json.dumps(job('meanwhile', Master=rank(1, 'true'), Worker=rank(2, 'true')))
    wait_for(lambda: kubectl.attempt('create', '-f', '-', text=text).returncode == 0, 'the one that is left answers')
    assert wait_end(cluster, kubectl, 'meanwhile') == 'Succeeded'
    assert leader(cluster) != first
    wait_for(lambda: cluster.request('GET', f'{PODS}/{first}')['status']['containerStatuses'][0]['restartCount'] == 1, 'the other one is started again')
    wait_operator(cluster, kubectl, replicas=2)


def test_from_webhooks_back(cluster, kubectl):
    """If the webhooks are not removed, no job can be created: the operator's log has the command for that, and the page has the others."""
    install_operator(cluster, kubectl, overlay='webhook', replicas=2)
    create(kubectl, 'stays', version='v1beta2', Master=rank(1, *STAY))
    wait_running(cluster, 'stays', 1)
    before = uids(cluster, 'stays')
    without, patch, _, *rest = read_commands('deploy.md', 'From one overlay to another')
    type_line(cluster, patch)
    install_operator(cluster, kubectl)
    said = wait_for(lambda: [line for line in kubectl('logs', '-n', 'muster-system', 'deployment/muster-operator').splitlines()
                             if json.loads(line)['event'] == 'operator.webhook'], 'it is said')
    assert len(said) == 1 and json.loads(said[0])['message'].endswith(without)
    assert 'failed calling webhook' in kubectl.attempt('create', '-f', '-', text=json.dumps(get_job(cluster, 'stays'))).stderr
    for command in (without, *rest):
        type_line(cluster, command)
    create(kubectl, 'new', Master=rank(1, 'true'))
    assert wait_end(cluster, kubectl, 'new') == 'Succeeded'
    assert uids(cluster, 'stays') == before


def test_the_operator_is_removed_and_then_all(cluster, kubectl):
    """Jobs continue without the operator, and are deleted with their definition; nothing is left, and it can be installed again."""
    install_operator(cluster, kubectl, overlay='webhook', replicas=2)
    create(kubectl, 'orphan', Master=rank(1, *STAY), Worker=rank(1, *STAY))
    wait_running(cluster, 'orphan', 2)
    before = uids(cluster, 'orphan')
    *alone, jobs, everything, _ = read_commands('deploy.md', 'Remove it')
    for command in alone:
        type_line(cluster, command)
    assert uids(cluster, 'orphan') == before and kubectl('get', 'pytorchjob', 'orphan', '-o', 'name') == 'pytorchjob.kubeflow.org/orphan\n'
    install_operator(cluster, kubectl)
    kubectl('delete', 'pod', 'orphan-worker-0')
    wait_for(lambda: uids(cluster, 'orphan').get('orphan-worker-0') not in (None, before['orphan-worker-0']), 'it is looked after again')
    type_line(cluster, jobs)
    type_line(cluster, everything)
    wait_for(lambda: find_pods(cluster, 'orphan') == [], 'its pods are gone')
    kinds = 'namespaces,crd,clusterroles,clusterrolebindings,validatingwebhookconfigurations'
    assert not [name for name in kubectl('get', kinds, '-o', 'name').splitlines() if 'muster' in name or 'pytorch' in name]
    install_operator(cluster, kubectl)
    create(kubectl, 'again', Master=rank(1, 'true'))
    assert wait_end(cluster, kubectl, 'again') == 'Succeeded'

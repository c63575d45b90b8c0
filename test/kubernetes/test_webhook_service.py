"""The overlay webhook of deploy/, unchanged, applied by `kubectl apply -k` on a node: two operators in pods, which the API server reaches by
their Service."""
import json

import pytest

import node
from kubectl import Kubectl
from node_fixtures import cluster  # noqa: F401 (fixtures)
from node_jobs import create, rank, wait_end, wait_operator
from program import SOURCE, turns, wait_for

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(node.missing() is not None, reason=str(node.missing()))]
OVERLAY = SOURCE / 'deploy/overlays/webhook'
PODS = '/api/v1/namespaces/muster-system/pods'


@pytest.fixture(scope='module')
def kubectl(cluster):
    made = Kubectl(cluster.kubeconfig)
    made('apply', '-k', OVERLAY)
    wait_operator(cluster, made, replicas=2)
    return made


def bad(version='v1'):
    replica = rank(1, 'true')
    replica['template']['spec']['containers'][0]['name'] = 'trainer'
    return json.dumps({'apiVersion': f'kubeflow.org/{version}', 'kind': 'PyTorchJob', 'metadata': {'name': 'bad'},
                       'spec': {'pytorchReplicaSpecs': {'Master': replica}}})


def refusal(kubectl, text, *words):
    done = kubectl.attempt('create', '-f', '-', *words, text=text)
    assert done.returncode != 0
    return done.stderr


def test_a_bad_job_is_refused(kubectl):
    said = refusal(kubectl, bad())
    assert 'admission webhook "pytorchjobs.muster.dev" denied the request: spec.pytorchReplicaSpecs.Master.template.spec.containers[0]' in said
    assert 'one container must be called pytorch' in said


@pytest.mark.parametrize('version', ['v1beta1', 'v1beta2'])
def test_a_job_of_an_old_version_runs(cluster, kubectl, version):
    """The job is written and read in its own version, and runs as v1; a bad job is judged as v1."""
    assert 'one container must' in refusal(kubectl, bad(version))
    create(kubectl, version, version=version, Master=rank(1, 'sh', '-c', 'echo $MASTER_ADDR'), Worker=rank(1, 'true'))
    assert wait_end(cluster, kubectl, version) == 'Succeeded'
    assert kubectl('logs', f'{version}-master-0') == f'{version}-master-0\n'
    for read in ('v1', 'v1beta1', 'v1beta2'):
        found = json.loads(kubectl('get', f'pytorchjobs.{read}.kubeflow.org', version, '-o', 'json'))
        assert found['apiVersion'] == f'kubeflow.org/{read}' and found['status']['conditions'][-1]['type'] == 'Succeeded'


def test_one_operator_is_enough(cluster, kubectl):
    """The leader's pod is deleted: while another one starts, the remaining operator answers each request, except those that were already under
    way."""
    before = {pod['metadata']['uid'] for pod in cluster.request('GET', PODS)['items']}
    lease = cluster.request('GET', '/apis/coordination.k8s.io/v1/namespaces/muster-system/leases/muster-operator')
    leader = lease['spec']['holderIdentity'].partition('_')[0]
    kubectl('delete', 'pod', '-n', 'muster-system', leader, '--wait=false')
    refused, unanswered = 0, []
    for _ in turns():
        said = refusal(kubectl, bad())
        refused += 'one container must' in said
        unanswered += [] if 'one container must' in said else [said]
        pods = cluster.request('GET', PODS)['items']
        ready = [pod for pod in pods if any(c['type'] == 'Ready' and c['status'] == 'True' for c in pod['status'].get('conditions', []))]
        if len(ready) == 2 and {pod['metadata']['uid'] for pod in ready} - before:
            break
    assert refused > 3 and len(unanswered) <= 1, unanswered
    create(kubectl, 'after', Master=rank(1, 'true'))
    assert wait_end(cluster, kubectl, 'after') == 'Succeeded'
    wait_for(lambda: cluster.request('GET', '/apis/coordination.k8s.io/v1/namespaces/muster-system/leases/muster-operator')['spec']['holderIdentity']
             != lease['spec']['holderIdentity'], 'another one leads')

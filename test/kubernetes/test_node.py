"""Pods that run, on a real node (node.py): the operator from its image, under its own service account; the tutorials' jobs with volumes, secrets,
claims and names."""
import base64
import json

import pytest

import node
from node_fixtures import cluster, kubectl  # noqa: F401 (fixtures)
from node_jobs import create, get_job, get_pod, install_operator, rank, wait_end
from program import wait_for
from volumes import Volumes

pytestmark = [pytest.mark.heavy, pytest.mark.sample, pytest.mark.skipif(node.missing() is not None, reason=str(node.missing()))]
MNIST = ('python3', '/opt/examples/mnist/mnist.py', '--images', '1280', '--test-images', '500', '--epochs', '1')


@pytest.fixture(scope='module')
def operator(cluster, kubectl):
    install_operator(cluster, kubectl)


@pytest.fixture()
def volumes(cluster, tmp_path):
    return Volumes(cluster, tmp_path)


def test_the_operator_runs_from_its_image_with_its_own_rights(cluster, kubectl, operator):
    create(kubectl, 'hello', Master=rank(1, 'sh', '-c', 'echo rank $RANK of $WORLD_SIZE'), Worker=rank(1, 'true'))
    assert wait_end(cluster, kubectl, 'hello') == 'Succeeded'
    assert kubectl('logs', 'hello-master-0') == 'rank 0 of 2\n'
    assert 'forbidden' not in kubectl('logs', '-n', 'muster-system', 'deployment/muster-operator')


@pytest.mark.parametrize('backend', ['gloo', 'muster'])
def test_mnist_trains_in_four_pods(cluster, kubectl, operator, volumes, backend):
    """A Master and three Workers find each other by the names of their Services, and average; the Master saves the model in a claim."""
    name = f'mnist-{backend}'
    volumes.make(f'{name}-model')
    volumes.claim(f'{name}-model')
    words = (*MNIST, '--backend', backend)
    claim = {'/mnt/model': ('model', {'persistentVolumeClaim': {'claimName': f'{name}-model'}})}
    create(kubectl, name, Master=rank(1, *words, '--save-model', '--dir', '/mnt/model', volumes=claim), Worker=rank(3, *words))
    assert wait_end(cluster, kubectl, name) == 'Succeeded', kubectl('logs', f'{name}-master-0')
    assert 'accuracy' in kubectl('logs', f'{name}-master-0')
    assert (volumes.folder(f'{name}-model') / 'mnist_cnn.pt').stat().st_size > 10000
    for worker in range(3):
        wait_for(lambda pod=f'{name}-worker-{worker}': get_pod(cluster, pod)['status']['phase'] == 'Succeeded', f'worker {worker} has ended')


def test_secrets_and_config_maps_are_there(cluster, kubectl, operator):
    """They are present as variables and as files, and so are a scratch folder and memory for workers of a data loader. The operator's log has no
    secret."""
    kubectl('create', 'secret', 'generic', 'minio', '--from-literal=key=s3cret', '--from-literal=user=me')
    kubectl('create', 'configmap', 'settings', '--from-literal=train.ini=lr=0.1')
    volumes = {'/vault': ('vault', {'secret': {'secretName': 'minio'}}), '/settings': ('settings', {'configMap': {'name': 'settings'}}),
               '/scratch': ('scratch', {'emptyDir': {}}), '/dev/shm': ('memory', {'emptyDir': {'medium': 'Memory'}})}
    env = {'KEY': {'valueFrom': {'secretKeyRef': {'name': 'minio', 'key': 'key'}}}}
    script = 'echo $KEY; cat /vault/user; echo; cat /settings/train.ini; echo; echo x > /scratch/a && cat /scratch/a; stat -f -c %T /dev/shm'
    create(kubectl, 'given', Master=rank(1, 'sh', '-c', script, volumes=volumes, env=env))
    assert wait_end(cluster, kubectl, 'given') == 'Succeeded'
    assert kubectl('logs', 'given-master-0').split() == ['s3cret', 'me', 'lr=0.1', 'x', 'tmpfs']
    said = kubectl('logs', '-n', 'muster-system', 'deployment/muster-operator') + json.dumps(get_job(cluster, 'given'))
    assert 's3cret' not in said and base64.b64encode(b's3cret').decode() not in said


def test_each_index_has_a_claim_of_its_own(cluster, kubectl, operator, volumes):
    """volumeClaimTemplates: the data that a rank wrote is present for the same index of the next job of that name, and for no other index."""
    for at in range(3):
        volumes.make(f'disk-{at}', kind='disks')
    template = {'metadata': {'name': 'data'}, 'spec': volumes.wants('disks')}
    script = 'cat /data/mark 2>/dev/null; echo $HOSTNAME >> /data/mark'
    for turn in range(2):
        create(kubectl, 'claims', Worker=rank(3, 'sh', '-c', script, claims=[template], volumes={'/data': ('data', None)}))
        assert wait_end(cluster, kubectl, 'claims') == 'Succeeded'
        for at in range(3):
            wait_for(lambda pod=f'claims-worker-{at}': get_pod(cluster, pod)['status']['phase'] == 'Succeeded', f'worker {at} has ended')
        logs = [kubectl('logs', f'claims-worker-{at}') for at in range(3)]
        assert logs == ['' if turn == 0 else f'claims-worker-{at}\n' for at in range(3)]
        kubectl('delete', 'pytorchjob', 'claims')
        wait_for(lambda: kubectl('get', 'pods', '-l', 'training.kubeflow.org/job-name=claims', '-o', 'name') == '', 'its pods are gone')
    found = [c for c in json.loads(kubectl('get', 'pvc', '-o', 'json'))['items'] if c['metadata']['name'].startswith('data-claims-')]
    assert {c['metadata']['name']: c['status']['phase'] for c in found} == {f'data-claims-worker-{at}': 'Bound' for at in range(3)}
    assert len({c['spec']['volumeName'] for c in found}) == 3


def test_names_of_the_ddp_tutorial(cluster, kubectl, operator):
    """NAME-master-0 and NAME-worker-N are names of the pods themselves: each rank finds every other rank, and itself."""
    ranks = ['ddp-master-0', *(f'ddp-worker-{at}' for at in range(3))]
    script = f"""
import os, socket, time
def look(name):
    while True:
        try:
            return socket.gethostbyname(name)
        except socket.gaierror:
            time.sleep(0.1)
for name in {ranks}:
    print(name, look(name), flush=True)
print('own', os.environ['OWN'], socket.gethostname(), os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'])
# The others may ask until all have been told.
open('/shared/' + socket.gethostname(), 'w').close()
while len(os.listdir('/shared')) < {len(ranks)}:
    time.sleep(0.1)
"""
    env = {'OWN': {'valueFrom': {'fieldRef': {'fieldPath': 'status.podIP'}}}}
    shared = {'/shared': ('shared', {'hostPath': {'path': '/run/shared-ddp', 'type': 'DirectoryOrCreate'}})}
    made = {'env': env, 'volumes': shared}
    create(kubectl, 'ddp', Master=rank(1, 'python3', '-c', script, **made), Worker=rank(3, 'python3', '-c', script, **made))
    assert wait_end(cluster, kubectl, 'ddp') == 'Succeeded'
    told = {name: [line.split() for line in kubectl('logs', name).splitlines()] for name in ranks}
    own = {name: lines[-1][1] for name, lines in told.items()}
    assert len(set(own.values())) == 4
    for name, lines in told.items():
        assert dict(line for line in lines[:-1]) == own, name
        assert lines[-1][2:] == [name, 'ddp-master-0', '23456'], name


def test_a_roles_rights_are_aggregated(cluster, kubectl, operator):
    kubectl('create', 'rolebinding', 'viewer', '--clusterrole=view', '--user=viewer')
    wait_for(lambda: kubectl.attempt('auth', 'can-i', 'list', 'pytorchjobs.kubeflow.org', '--as', 'viewer').stdout.strip() == 'yes', 'view has jobs')
    assert kubectl.attempt('auth', 'can-i', 'create', 'pytorchjobs.kubeflow.org', '--as', 'viewer').stdout.strip() == 'no'

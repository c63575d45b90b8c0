"""Pods that run, on a real node (node.py): the operator from its image, under its own service account, and the tutorials' MNIST job."""
import json
import subprocess

import pytest

import images
import node as nodes
from program import BUILD, SOURCE, turns, wait_for
from test_deploy import Kubectl, as_list, printed

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(nodes.missing() is not None, reason=str(nodes.missing()))]
# A pod sees this machine's programs (python3 with torch): no registry has to be there, and no image of gigabytes.
MACHINE = ('/usr', '/etc/alternatives', '/etc/ld.so.cache')


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    made = nodes.NodeCluster()
    folder = tmp_path_factory.mktemp('images')
    try:
        made.start()
        made.import_image(images.pause(folder))
        made.import_image(operator_image(folder))
        made.import_image(worker_image(folder))
        yield made
    finally:
        made.close()


def operator_image(folder):
    root = folder / 'operator'
    subprocess.run([SOURCE / 'deploy/images/root', BUILD / 'bin/muster-operator', root], check=True, stdout=subprocess.DEVNULL)
    return images.image(root, 'docker.io/library/muster-operator:0.1.0', folder / 'operator.tar', Entrypoint=['/muster-operator'], User='65532:65532')


def worker_image(folder):
    """Names that point into what is mounted from this machine."""
    root = folder / 'worker'
    for name in ('usr', 'etc', 'tmp', 'proc', 'sys', 'dev'):
        (root / name).mkdir(parents=True)
    for name in ('bin', 'sbin', 'lib', 'lib64'):
        (root / name).symlink_to(f'usr/{name}')
    (root / 'etc/passwd').write_text('root:x:0:0::/tmp:/bin/sh\n')
    return images.image(root, 'test.local/worker:1', folder / 'worker.tar')


@pytest.fixture(scope='module')
def kubectl(cluster):
    return Kubectl(cluster.kubeconfig)


@pytest.fixture(scope='module')
def operator(cluster, kubectl):
    kubectl('apply', '--server-side', '-f', '-', text=as_list(printed('cluster')))

    def available():
        cluster.check_alive()
        status = cluster.request('GET', '/apis/apps/v1/namespaces/muster-system/deployments/muster-operator').get('status', {})
        return status.get('availableReplicas') == 1

    for _ in turns():
        if available():
            return
    pytest.fail('the operator is not available: ' + kubectl('describe', 'pods', '-n', 'muster-system')
                + kubectl.attempt('logs', '-n', 'muster-system', 'deployment/muster-operator').stdout)


def rank(replicas, *words):
    volumes = [{'name': f'machine-{i}', 'hostPath': {'path': path}} for i, path in enumerate(MACHINE)]
    mounts = [{'name': f'machine-{i}', 'mountPath': path, 'readOnly': True} for i, path in enumerate(MACHINE)]
    volumes.append({'name': 'examples', 'hostPath': {'path': str(SOURCE / 'examples')}})
    mounts.append({'name': 'examples', 'mountPath': '/opt/examples', 'readOnly': True})
    container = {'name': 'pytorch', 'image': 'test.local/worker:1', 'imagePullPolicy': 'Never', 'command': list(words), 'volumeMounts': mounts,
                 'resources': {'requests': {'cpu': '250m'}},  # without any, a pod gets what nobody else on this machine wants
                 'env': [{'name': 'HOME', 'value': '/tmp'}, {'name': 'OMP_NUM_THREADS', 'value': '1'}]}
    return {'replicas': replicas, 'restartPolicy': 'Never', 'template': {'spec': {'containers': [container], 'volumes': volumes}}}


def create(kubectl, name, **replicas):
    kubectl('create', '-f', '-', text=json.dumps({'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': name},
                                                  'spec': {'pytorchReplicaSpecs': replicas}}))


def wait_end(cluster, kubectl, name):
    def ended():
        cluster.check_alive()
        job = cluster.request('GET', f'/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/{name}')
        return next((c['type'] for c in job.get('status', {}).get('conditions', []) if c['type'] in ('Succeeded', 'Failed')), None)

    for _ in turns():
        if ended():
            return ended()
    return pytest.fail(kubectl('describe', 'pods') + ''.join(kubectl.attempt('logs', f'{name}-{which}').stdout for which in ('master-0', 'worker-0')))


def test_the_operator_runs_from_its_image_with_its_own_rights(cluster, kubectl, operator):
    create(kubectl, 'hello', Master=rank(1, 'sh', '-c', 'echo rank $RANK of $WORLD_SIZE'), Worker=rank(1, 'true'))
    assert wait_end(cluster, kubectl, 'hello') == 'Succeeded'
    assert kubectl('logs', 'hello-master-0') == 'rank 0 of 2\n'
    assert 'forbidden' not in kubectl('logs', '-n', 'muster-system', 'deployment/muster-operator')


def test_mnist_trains_in_four_pods(cluster, kubectl, operator):
    """Master 1 and Worker 3 find each other by the names of their Services, and average by Gloo."""
    words = ('python3', '/opt/examples/mnist/mnist.py', '--backend', 'gloo', '--images', '1280', '--test-images', '500', '--epochs', '1')
    create(kubectl, 'mnist', Master=rank(1, *words), Worker=rank(3, *words))
    assert wait_end(cluster, kubectl, 'mnist') == 'Succeeded', kubectl('logs', 'mnist-master-0')
    assert 'accuracy' in kubectl('logs', 'mnist-master-0')
    for worker in range(3):
        wait_for(lambda name=f'mnist-worker-{worker}': cluster.request('GET', f'/api/v1/namespaces/default/pods/{name}')['status']['phase'] == 'Succeeded',
                 f'worker {worker} has ended')


def test_a_roles_rights_are_aggregated(cluster, kubectl, operator):
    kubectl('create', 'rolebinding', 'viewer', '--clusterrole=view', '--user=viewer')
    wait_for(lambda: kubectl.attempt('auth', 'can-i', 'list', 'pytorchjobs.kubeflow.org', '--as', 'viewer').stdout.strip() == 'yes', 'view has jobs')
    assert kubectl.attempt('auth', 'can-i', 'create', 'pytorchjobs.kubeflow.org', '--as', 'viewer').stdout.strip() == 'no'

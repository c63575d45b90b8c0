"""Code that tests of running pods share: images made here, the operator from its image, and jobs whose ranks are this machine's programs."""
import contextlib
import json
import pathlib
import subprocess

import pytest

import images
from node_cluster import NodeCluster
from program import BUILD, SOURCE, turns
from test_deploy import as_list, printed

OPERATOR, WORKER = 'docker.io/library/muster-operator:0.1.0', 'test.local/worker:1'
DEPLOYMENT = '/apis/apps/v1/namespaces/muster-system/deployments/muster-operator'
# A pod mounts this machine's programs (python3 with torch), so that neither a registry nor an image of gigabytes is needed. The /opt folders have
# what is built here.
MACHINE = {'/usr': '/usr', '/etc/alternatives': '/etc/alternatives', '/etc/ld.so.cache': '/etc/ld.so.cache', '/opt/examples': SOURCE / 'examples',
           '/opt/muster': BUILD / 'python'}


@contextlib.contextmanager
def node_cluster(folder, **options):
    """Yields a cluster with nodes that have the images. `folder`: where the images are made."""
    made = NodeCluster(**options)
    try:
        made.start()
        for archive in (images.pause(folder), operator_image(folder), worker_image(folder)):
            made.import_image(archive)
        yield made
    finally:
        made.close()


def operator_image(folder):
    root = folder / 'operator'
    subprocess.run([SOURCE / 'deploy/images/root', BUILD / 'bin/muster-operator', root], check=True, stdout=subprocess.DEVNULL)
    return images.image(root, OPERATOR, folder / 'operator.tar', Entrypoint=['/muster-operator'], User='65532:65532')


def worker_image(folder):
    """Makes an image of links that point into the folders mounted from this machine."""
    root = folder / 'worker'
    for name in ('usr', 'etc', 'tmp', 'proc', 'sys', 'dev'):
        (root / name).mkdir(parents=True)
    for name in ('bin', 'sbin', 'lib', 'lib64'):
        (root / name).symlink_to(f'usr/{name}')
    (root / 'etc/passwd').write_text('root:x:0:0::/tmp:/bin/sh\n')
    return images.image(root, WORKER, folder / 'worker.tar')


def install_operator(cluster, kubectl, overlay='cluster', replicas=1, change=None):
    """Installs the output of `muster deploy --print`, which `change` may change, and waits until that many replicas are available."""
    objects = printed(overlay)
    if change:
        change(objects)
    kubectl('apply', '--server-side', '--force-conflicts', '-f', '-', text=as_list(objects))
    wait_operator(cluster, kubectl, replicas)


def wait_operator(cluster, kubectl, replicas=1):
    def is_available():
        cluster.check_alive()
        found = cluster.request('GET', DEPLOYMENT)
        status = found.get('status', {})
        return status.get('observedGeneration') == found['metadata']['generation'] and status.get('updatedReplicas') == replicas == status.get(
            'availableReplicas') == status.get('replicas')

    for _ in turns():
        if is_available():
            return
    pytest.fail('the operator is not available: ' + kubectl('describe', 'pods', '-n', 'muster-system')
                + kubectl.attempt('logs', '-n', 'muster-system', 'deployment/muster-operator').stdout)


def rank(replicas, *words, env=None, volumes=None, claims=None, policy='Never', container=None, **spec):
    """Returns a replica of a job. `volumes`: {mount path: (name, source)}; `env`: {name: value or source}; `claims`: volumeClaimTemplates."""
    mounted = {f'machine-{at}': (where, {'hostPath': {'path': str(path)}}) for at, (where, path) in enumerate(MACHINE.items())}
    own = {name: (where, source) for where, (name, source) in (volumes or {}).items()}
    variables = {'HOME': '/tmp', 'OMP_NUM_THREADS': '1', 'PYTHONPATH': '/opt/muster', **(env or {})}
    main = {'name': 'pytorch', 'image': WORKER, 'imagePullPolicy': 'Never', 'command': list(words),
            'volumeMounts': [{'name': name, 'mountPath': where, **({'readOnly': True} if name in mounted else {})}
                             for name, (where, _) in (mounted | own).items()],
            'resources': {'requests': {'cpu': '250m'}},  # without a request, a pod gets only the CPU time that no other process uses
            'env': [{'name': name, **(value if isinstance(value, dict) else {'value': value})} for name, value in variables.items()], **(container or {})}
    pod = {'containers': [main], 'volumes': [{'name': name, **source} for name, (_, source) in (mounted | own).items() if source is not None],
           'terminationGracePeriodSeconds': 2, **spec}
    return {'replicas': replicas, 'restartPolicy': policy, 'template': {'spec': pod}, **({'volumeClaimTemplates': claims} if claims else {})}


def job(name, version='v1', run=None, **replicas):
    return {'apiVersion': f'kubeflow.org/{version}', 'kind': 'PyTorchJob', 'metadata': {'name': name},
            'spec': {'pytorchReplicaSpecs': replicas, **({'runPolicy': run} if run else {})}}


def create(kubectl, name, **more):
    kubectl('create', '-f', '-', text=json.dumps(job(name, **more)))


def get_job(cluster, name):
    return cluster.request('GET', f'/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/{name}')


def get_pod(cluster, name, namespace='default'):
    return cluster.request('GET', f'/api/v1/namespaces/{namespace}/pods/{name}')


def main_process(cluster, name, namespace):
    """Returns the PID, on this machine, of the first process of a pod's container: the oldest process in the pod's control group that is not
    `pause`."""
    uid = get_pod(cluster, name, namespace)['metadata']['uid']
    found = []
    for folder in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            words = (folder / 'cmdline').read_bytes().split(b'\0')
            if f'pod{uid}' in (folder / 'cgroup').read_text() and words[0] and words[0] != b'/pause':
                found.append((int((folder / 'stat').read_text().rpartition(')')[2].split()[19]), int(folder.name)))
        except OSError:
            continue  # the process has ended
    return min(found)[1]


def find_pods(cluster, job):
    """Returns the pods that a job has now."""
    selector = f'labelSelector=training.kubeflow.org/job-name={job}'
    return cluster.request('GET', f'/api/v1/namespaces/default/pods?{selector}')['items']


def wait_end(cluster, kubectl, name):
    """Waits until the job is over, and returns Succeeded or Failed."""
    def ended():
        cluster.check_alive()
        held = [c['type'] for c in get_job(cluster, name).get('status', {}).get('conditions', []) if c['status'] == 'True']
        return next((c for c in held if c in ('Succeeded', 'Failed')), None)

    for _ in turns():
        if ended():
            return ended()
    return pytest.fail(kubectl('describe', 'pods') + ''.join(kubectl.attempt('logs', f'{name}-{which}').stdout for which in ('master-0', 'worker-0')))

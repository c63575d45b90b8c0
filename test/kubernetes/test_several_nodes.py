"""Several nodes: ranks that meet across them, claims that only one of them can mount, and nodes that are lost. The test counts the running containers
all the time, in the state files of each node's runtime: an index never has two at the same time.
"""
import collections
import json
import subprocess

import pytest

import node
from node_fixtures import kubectl  # noqa: F401 (fixtures)
from node_jobs import create, get_job, get_pod, install_operator, node_cluster, rank, wait_end
from program import BUILD, LIMIT_S, turns, wait_for
from repeated import Repeated
from volumes import Volumes

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(node.missing() is not None, reason=str(node.missing()))]
HERE = {'kubernetes.io/hostname': 'node'}
SILENT_S = 15
STAY = ('sh', '-c', 'trap "exit 0" TERM; while :; do sleep 1 & wait; done')
# When a node is silent, Kubernetes asks for the pod's end at once, not after five minutes.
SOON = [{'key': f'node.kubernetes.io/{key}', 'operator': 'Exists', 'effect': 'NoExecute', 'tolerationSeconds': 1} for key in ('unreachable', 'not-ready')]


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    with node_cluster(tmp_path_factory.mktemp('images'), nodes=3) as made:
        yield made


def install(cluster, kubectl, *flags):
    """Installs an operator on the node that is not lost."""
    def change(objects):
        pod = objects['Deployment', 'muster-operator']['spec']['template']['spec']
        pod['nodeSelector'] = HERE
        pod['containers'][0]['args'].extend(flags)
    install_operator(cluster, kubectl, change=change)


@pytest.fixture(scope='module')
def operator(cluster, kubectl):
    install(cluster, kubectl, '--lost-nodes=tainted')


@pytest.fixture()
def count(cluster):
    """Counts the running containers on all nodes again and again: a pod's name must never have two at once."""
    most = collections.Counter()

    def look():
        for name, running in collections.Counter(cluster.running()).items():
            most[name] = max(most[name], running)
    with Repeated(look) as looks:
        yield most
    assert len(looks.answers) > 10 and set(most.values()) == {1}, most


def rather_on(name, **more):
    """Returns fields of a pod's spec that prefer the node while it exists."""
    term = {'weight': 100, 'preference': {'matchExpressions': [{'key': 'kubernetes.io/hostname', 'operator': 'In', 'values': [name]}]}}
    return {'affinity': {'nodeAffinity': {'preferredDuringSchedulingIgnoredDuringExecution': [term]}}, **more}


def start_on(cluster, kubectl, name, where, **more):
    """Creates a job whose Master runs on the first node and whose worker runs on `where`; returns the worker's pod."""
    create(kubectl, name, Master=rank(1, *STAY, nodeSelector=HERE), Worker=rank(1, *STAY, **rather_on(where, **more)))
    pod = wait_for(lambda: runs(cluster, f'{name}-worker-0'), 'the worker runs')
    assert pod['spec']['nodeName'] == where
    wait_for(lambda: cluster.running().count(f'{name}-worker-0') == 1, 'containerd has it')
    return pod


def find_pod(cluster, name):
    found = [pod for pod in cluster.request('GET', '/api/v1/namespaces/default/pods')['items'] if pod['metadata']['name'] == name]
    return found[0] if found else None


def runs(cluster, name):
    pod = find_pod(cluster, name)
    return pod if pod and pod['status']['phase'] == 'Running' else None


def is_silent(cluster, name):
    conditions = cluster.request('GET', f'/api/v1/nodes/{name}')['status']['conditions']
    return any(c['type'] == 'Ready' and c['status'] == 'Unknown' for c in conditions)


def wait_replaced(cluster, pod):
    """Waits until a new pod runs, and returns it."""
    def is_new():
        found = runs(cluster, pod['metadata']['name'])
        return found if found and found['metadata']['uid'] != pod['metadata']['uid'] else None
    return wait_for(is_new, 'the worker is made again')


def end(cluster, kubectl, name):
    kubectl('delete', 'pytorchjob', name)
    wait_for(lambda: not [n for n in cluster.running() if n.startswith(f'{name}-')], 'nothing of it runs')


# --- across nodes ---

@pytest.mark.parametrize('backend', ['gloo', 'muster'])
def test_ranks_on_three_nodes_average(cluster, kubectl, operator, backend):
    words = ('python3', '/opt/examples/mnist/mnist.py', '--images', '640', '--test-images', '200', '--backend', backend)
    name = f'across-{backend}'
    apart = {'topologySpreadConstraints': [{'maxSkew': 1, 'topologyKey': 'kubernetes.io/hostname', 'whenUnsatisfiable': 'DoNotSchedule',
                                            'labelSelector': {'matchLabels': {'training.kubeflow.org/job-name': name}}}]}
    create(kubectl, name, Master=rank(1, *words, **apart), Worker=rank(2, *words, **apart))
    assert wait_end(cluster, kubectl, name) == 'Succeeded', kubectl('logs', f'{name}-master-0')
    pods = [get_pod(cluster, f'{name}-{which}') for which in ('master-0', 'worker-0', 'worker-1')]
    assert {pod['spec']['nodeName'] for pod in pods} == {'node', 'node-2', 'node-3'}


# --- claims that one node has ---

def test_ranks_of_one_claim_land_where_it_is(cluster, kubectl, operator, tmp_path):
    """ReadWriteOnce: three ranks share a disk of node-2, and therefore run there."""
    volumes = Volumes(cluster, tmp_path)
    volumes.make('disk-of-2', node='node-2')
    volumes.claim('disk-of-2')
    share = {'/data': ('data', {'persistentVolumeClaim': {'claimName': 'disk-of-2'}})}
    create(kubectl, 'together', Master=rank(1, 'sh', '-c', 'until [ $(ls /data | wc -l) = 2 ]; do sleep 0.1; done', volumes=share),
           Worker=rank(2, 'sh', '-c', 'echo > /data/$RANK', volumes=share))
    assert wait_end(cluster, kubectl, 'together') == 'Succeeded'
    for which in ('master-0', 'worker-0', 'worker-1'):
        assert get_pod(cluster, f'together-{which}')['spec']['nodeName'] == 'node-2'


def test_a_rank_that_cannot_come_to_its_claim_says_so(cluster, kubectl, operator, tmp_path):
    """`muster run` prints the scheduler's message."""
    volumes = Volumes(cluster, tmp_path)
    volumes.make('disk-of-3', node='node-3')
    volumes.claim('disk-of-3')
    share = {'/data': ('data', {'persistentVolumeClaim': {'claimName': 'disk-of-3'}})}
    job = {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': 'apart'},
           'spec': {'runPolicy': {'activeDeadlineSeconds': 20}, 'pytorchReplicaSpecs': {'Master': rank(1, 'true', volumes=share, nodeSelector=HERE)}}}
    (tmp_path / 'job.json').write_text(json.dumps(job))
    done = subprocess.run([BUILD / 'bin/muster', 'run', '--kubeconfig', cluster.kubeconfig, '-f', tmp_path / 'job.json'], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode != 0 and 'rank 0 waits: 0/3 nodes are available' in done.stderr and 'PersistentVolume' in done.stderr, done.stderr


# --- nodes that are lost ---

def test_a_node_that_comes_back_has_its_ranks_still(cluster, kubectl, operator, count):
    """kubelet and containerd are killed and started again: the containers kept running, and no pod was created again."""
    pod = start_on(cluster, kubectl, 'back', 'node-2')
    back = cluster.nodes[1]
    back.kill('kubelet', 'containerd')
    wait_for(lambda: is_silent(cluster, 'node-2'), 'the node is silent')
    assert cluster.running().count('back-worker-0') == 1
    back.start_runtime()
    wait_for(back.is_ready, 'the node answers')
    found = get_pod(cluster, 'back-worker-0')
    assert found['metadata']['uid'] == pod['metadata']['uid'] and found['status']['containerStatuses'][0]['restartCount'] == 0
    end(cluster, kubectl, 'back')


def test_a_rank_is_replaced_once_its_node_is_out_of_service(cluster, kubectl, operator, count):
    """While its container may run, its pod stays, although Kubernetes has asked for its end."""
    pod = start_on(cluster, kubectl, 'lost', 'node-2', tolerations=SOON)
    cluster.nodes[1].kill('kubelet', 'containerd')
    wait_for(lambda: 'deletionTimestamp' in get_pod(cluster, 'lost-worker-0')['metadata'], 'its end is asked for')
    for _ in turns(SILENT_S):
        assert get_pod(cluster, 'lost-worker-0')['metadata']['uid'] == pod['metadata']['uid']
    assert cluster.running().count('lost-worker-0') == 1, 'the container still runs'
    cluster.nodes[1].power_off()
    kubectl('taint', 'nodes', 'node-2', 'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute')
    made = wait_replaced(cluster, pod)
    assert made['spec']['nodeName'] != 'node-2'
    assert 'failures' not in get_job(cluster, 'lost')['status'].get('counters', {})
    wait_for(lambda: cluster.running().count('lost-worker-0') == 1, 'it runs')
    end(cluster, kubectl, 'lost')


def test_a_rank_is_replaced_when_its_node_was_silent_for_its_time(cluster, kubectl, operator, count):
    """--lost-nodes=SECONDS: the rank is not replaced before that time, and the event gives the reason."""
    install(cluster, kubectl, f'--lost-nodes={SILENT_S}')
    pod = start_on(cluster, kubectl, 'silent', 'node-3')
    cluster.nodes[2].power_off()
    wait_for(lambda: is_silent(cluster, 'node-3'), 'the node is silent')
    for _ in turns(SILENT_S / 2):
        assert get_pod(cluster, 'silent-worker-0')['metadata']['uid'] == pod['metadata']['uid']
    assert wait_replaced(cluster, pod)['spec']['nodeName'] == 'node'
    said = kubectl('events', '--for', 'pytorchjob/silent')
    assert f'Deleted pod: silent-worker-0, whose node node-3 has not answered for {SILENT_S} s' in said
    wait_for(lambda: cluster.running().count('silent-worker-0') == 1, 'it runs')
    end(cluster, kubectl, 'silent')

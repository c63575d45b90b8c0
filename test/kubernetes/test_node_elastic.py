"""An elastic job on a real node: the job that `elasticdl train --yaml` writes, created with only the rights of deploy/elasticdl-rbac.yaml,
trains while all its parts are killed.
"""
import json
import os
import signal
import subprocess

import pytest

import images
import node
from kubectl import Kubectl
from node_jobs import get_pod, install_operator, main_process, node_cluster
from program import BUILD, LIMIT_S, SOURCE, turns, wait_for
from volumes import Volumes

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(node.missing() is not None, reason=str(node.missing()))]
SEEN = ('/usr', '/etc/alternatives', '/etc/ld.so.cache')  # folders of this machine in the workers' pods
MASTER, WORKERS = 'elasticdl-zoo-master', 'zoo-edljob-worker-'
SLOW_S = 2
MEMBER = 'system:serviceaccount:elastic:default'


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp('images')
    with node_cluster(folder) as made:
        made.import_image(coordinator_image(folder))
        yield made


def coordinator_image(folder):
    root = folder / 'coordinator'
    subprocess.run([SOURCE / 'deploy/images/root', BUILD / 'bin/muster', root], check=True, stdout=subprocess.DEVNULL)
    return images.image(root, 'docker.io/library/muster:0.1.0', folder / 'coordinator.tar', Env=['PATH=/'])


@pytest.fixture(scope='module')
def member(cluster):
    """Returns kubectl with the namespace's own account, which has the rights of deploy/elasticdl-rbac.yaml."""
    kubectl = Kubectl(cluster.kubeconfig)
    install_operator(cluster, kubectl)
    cluster.namespace('elastic')
    kubectl('apply', '-n', 'elastic', '-f', str(SOURCE / 'deploy/elasticdl-rbac.yaml'))
    return lambda *words, **more: kubectl('--as', MEMBER, '-n', 'elastic', *words, **more)


def zoo(folder, epochs, pause_s, *more, name='zoo'):
    """Runs ElasticDL's commands in a separate folder, and returns the file that `train` writes for a cluster. The job is the example of `zoo init`,
    with a pause in each step (SLOW_S while the folder has a file `slow`). `more`: further flags."""
    def elasticdl(*words):
        done = subprocess.run([BUILD / 'bin/elasticdl', *words], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
    elasticdl('zoo', 'init')
    path = folder / 'model_zoo/example.py'
    text = path.read_text().replace('num_epochs=2', f'num_epochs={epochs}').replace('    return loss\n', f"    time.sleep({SLOW_S} if os.path.exists('/zoo/slow') else {pause_s})\n    return loss\n")
    path.write_text(text.replace('import sys\n', 'import os\nimport sys\nimport time\n'))
    mounts = [(name, name) for name in SEEN] + [(folder, '/zoo'), (BUILD / 'python', '/opt/muster')]
    volumes = ';'.join(f'host_path={here},mount_path={there}' for here, there in mounts)
    return elasticdl('train', f'--job_name={name}', '--namespace=elastic', '--num_workers=2', '--worker_image=test.local/worker:1', '--image_pull_policy=Never',
                     '--job_command=cd /zoo && exec python3 -m model_zoo.example', '--envs=PYTHONPATH=/opt/muster,HOME=/tmp,OMP_NUM_THREADS=1',
                     '--worker_resource_request=cpu=0.3,memory=512Mi', '--worker_resource_limit=cpu=1,memory=2048Mi', '--master_resource_request=cpu=0.2,memory=64Mi',
                     '--master_resource_limit=cpu=1,memory=1024Mi', f'--volume={volumes}', *more, '--yaml', '-')


def pod(cluster, name):
    return get_pod(cluster, name, 'elastic')


def is_made_again(cluster, name, before):
    """Whether a pod of that name exists whose uid is not `before`. For a moment there may be no pod."""
    pods = cluster.request('GET', f'/api/v1/namespaces/elastic/pods?fieldSelector=metadata.name%3D{name}')['items']
    return bool(pods) and pods[0]['metadata']['uid'] != before


def get_job(cluster, name):
    return cluster.request('GET', f'/apis/kubeflow.org/v1/namespaces/elastic/pytorchjobs/{name}')


def has_ended(cluster, name):
    """Returns the condition with which the job has ended, or None if it continues."""
    cluster.check_alive()
    conditions = get_job(cluster, name).get('status', {}).get('conditions', [])
    return next((c for c in conditions if c['type'] in ('Succeeded', 'Failed')), None)


@pytest.mark.sample
def test_an_elastic_job_trains_while_all_of_it_is_killed(cluster, member, tmp_path):
    """A worker is killed, then the coordinator's container, and one worker is added: each record counts once, and kubectl shows the tutorial's
    table."""
    member('create', '-f', '-', text=zoo(tmp_path, epochs=2, pause_s=0.2))
    names = [MASTER, WORKERS + '0', WORKERS + '1']

    def all_run():
        cluster.check_alive()
        rows = [line.split() for line in member('get', 'pods').splitlines()]
        return rows[1:] and all(row[2] == 'Running' for row in rows[1:]) and rows
    table = wait_for(all_run, 'all run')
    assert table[0] == ['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE']
    assert [row[:4] for row in table[1:]] == [[name, '1/1', 'Running', '0'] for name in names]
    wait_for(lambda: 'records' in member('logs', MASTER), 'it trains')

    before = pod(cluster, WORKERS + '1')['metadata']['uid']
    os.kill(main_process(cluster, WORKERS + '1', 'elastic'), signal.SIGKILL)
    wait_for(lambda: is_made_again(cluster, WORKERS + '1', before), 'it is made again')
    os.kill(main_process(cluster, MASTER, 'elastic'), signal.SIGKILL)
    wait_for(lambda: pod(cluster, MASTER)['status']['containerStatuses'][0]['restartCount'] == 1, 'the coordinator comes back')
    member('scale', 'pytorchjob', 'zoo', '--replicas=3')
    wait_for(lambda: WORKERS + '2' in member('get', 'pods'), 'one worker more')

    end = next((end for _ in turns(4 * LIMIT_S) if (end := has_ended(cluster, 'zoo'))), None)
    assert end and end['type'] == 'Succeeded', f'{end}\n{member("logs", MASTER)}\n{member("describe", "pods")}'
    said = member('logs', MASTER)
    for line in ('epoch 1: 6,400 records committed', 'epoch 2: 6,400 records committed', 'done: 12,800 records'):
        assert line in said


def coordinator_status(journals):
    """Returns the status that the coordinator writes into the folder of its volume; {} if it has not written one yet."""
    found = list(journals.glob('*/status.json'))
    assert len(found) < 2, found
    return json.loads(found[0].read_text()) if found else {}


def folder_volume(cluster, name, base):
    """Makes a folder on the node. Returns (the value of --journal_volume, the folder on this machine)."""
    (base / name).mkdir()
    return f'host_path={base / name}', base / name


def claim_volume(cluster, name, base):
    """Returns the same for a claim that is bound to a disk of the node."""
    volumes = Volumes(cluster, base, 'elastic')
    volumes.make(name, node='node')
    volumes.claim(name)
    wait_for(lambda: find_claim(cluster, name)['status'].get('phase') == 'Bound', 'the claim is bound')
    return f'claim_name={name}', volumes.folder(name)


def find_claim(cluster, name):
    return cluster.request('GET', f'/api/v1/namespaces/elastic/persistentvolumeclaims/{name}')


def end_coordinator(cluster, way, master):
    """Kills, deletes or evicts the coordinator; waits until it has another container, or another pod."""
    before = pod(cluster, master)
    path, uid = f'/api/v1/namespaces/elastic/pods/{master}', before['metadata']['uid']
    if way == 'kill':
        restarts = before['status']['containerStatuses'][0]['restartCount']
        os.kill(main_process(cluster, master, 'elastic'), signal.SIGKILL)
        wait_for(lambda: pod(cluster, master)['status']['containerStatuses'][0]['restartCount'] > restarts, 'it is started again')
        assert pod(cluster, master)['metadata']['uid'] == uid
        return
    if way == 'delete':
        cluster.request('DELETE', path)
    else:
        cluster.request('POST', f'{path}/eviction', {'apiVersion': 'policy/v1', 'kind': 'Eviction', 'metadata': {'name': master, 'namespace': 'elastic'}})
    wait_for(lambda: is_made_again(cluster, master, uid), 'it is made again')


@pytest.mark.parametrize(('volume', 'ways'), [(folder_volume, ('delete',)), (folder_volume, ('evict',)), (claim_volume, ('kill', 'delete'))])
def test_a_journal_on_a_volume_outlives_its_pod(cluster, member, tmp_path, volume, ways):
    """The coordinator is deleted, evicted or killed in the middle: another one continues where the journal ends, its workers train meanwhile and none
    is created again, and each record counts once. Steps are slow until then, so that this is also the middle on a busy machine."""
    name, slow = f'kept-{"-".join(ways)}', tmp_path / 'slow'
    slow.touch()
    master, (flag, journals) = f'elasticdl-{name}-master', volume(cluster, f'journals-{name}', tmp_path)
    member('create', '-f', '-', text=zoo(tmp_path, 2, 0.2, f'--journal_volume={flag}', name=name))
    wait_for(lambda: coordinator_status(journals).get('steps', 0) >= 3, 'it trains')
    uids = [pod(cluster, f'{name}-edljob-worker-{at}')['metadata']['uid'] for at in range(2)]
    for way in ways:
        before = coordinator_status(journals)
        assert before['phase'] == 'Training', before
        end_coordinator(cluster, way, master)
        wait_for(lambda: coordinator_status(journals)['term'] > before['term'], f'after {way} another one goes on')
        assert coordinator_status(journals)['steps'] >= before['steps']
        wait_for(lambda: coordinator_status(journals)['steps'] > before['steps'], f'after {way} it trains on')
    slow.unlink()
    lease = cluster.request('GET', f'/apis/coordination.k8s.io/v1/namespaces/elastic/leases/{name}-coordinator')
    owner, job = lease['metadata']['ownerReferences'], get_job(cluster, name)
    assert lease['spec']['leaseTransitions'] == len(ways) and [each['uid'] for each in owner] == [job['metadata']['uid']], lease
    end = next((end for _ in turns(4 * LIMIT_S) if (end := has_ended(cluster, name))), None)
    assert end and end['type'] == 'Succeeded', f'{end}\n{member("logs", master)}\n{member("describe", "pods")}'
    said, status = member('logs', master), coordinator_status(journals)
    for line in ('epoch 1: 6,400 records committed', 'epoch 2: 6,400 records committed', 'done: 12,800 records'):
        assert line in said
    assert (status['phase'], status['records'], status['steps']) == ('Done', 12800, 100) and status['lost'] == 0, status
    assert [pod(cluster, f'{name}-edljob-worker-{at}')['metadata']['uid'] for at in range(2)] == uids
    member('delete', 'pytorchjob', name)
    wait_for(lambda: f'{name}-coordinator' not in [each['metadata']['name'] for each in cluster.request(
        'GET', '/apis/coordination.k8s.io/v1/namespaces/elastic/leases')['items']], 'its Lease goes with it')


def test_a_coordinator_that_has_failed_is_not_started_again(cluster, member, tmp_path):
    """Its container has restart rules, which the operator adds if the API server has them; a coordinator that was killed is started again (see
    above)."""
    member('create', '-f', '-', text=zoo(tmp_path, epochs=1, pause_s=0, name='wrong').replace('--progress', '--no-such-option'))

    end = wait_for(lambda: has_ended(cluster, 'wrong'), 'the job has ended')
    assert end['type'] == 'Failed' and 'is failed because its coordinator failed: ' in end['message'], end
    status = wait_for(lambda: (now := pod(cluster, MASTER.replace('zoo', 'wrong'))['status'])['phase'] == 'Failed' and now, 'its pod has ended')
    assert status['containerStatuses'][0]['restartCount'] == 0, status
    assert status['containerStatuses'][0]['state']['terminated']['exitCode'] == 64, status

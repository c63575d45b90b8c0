"""muster cp on a real node: copies files of a finished job's claim, which a pod reads and serves."""
import hashlib
import signal

import pytest

import node
from node_fixtures import cluster, kubectl  # noqa: F401 (fixtures)
from node_jobs import create, get_pod, install_operator, rank, wait_end
from program import LIMIT_S, Muster, wait_for
from volumes import Volumes

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(node.missing() is not None, reason=str(node.missing()))]
# The script leaves folders, links of both kinds, a pipe, a large file, a time and permissions.
LEAVE = ('cd /results && mkdir -p deep/folder empty && echo model > model.pt && head -c 30000000 /dev/urandom > large && echo x > "deep/folder/a name" '
         '&& ln -s model.pt latest && ln large again && mkfifo pipe && touch -d @1000000000 model.pt && chmod 600 model.pt && sha256sum < large > sum')
MISSING_IMAGE = 'test.local/none:1'
# The image has one program, and no dynamic loader for the machine's programs in /usr that pods mount. (The operator's image has one if the operator
# is linked with libraries.)
NO_PYTHON_IMAGE = 'test.local/pause:1'


@pytest.fixture(scope='module')
def operator(cluster, kubectl, tmp_path_factory):
    install_operator(cluster, kubectl)
    volumes = Volumes(cluster, tmp_path_factory.mktemp('volumes'))
    volumes.make('results')
    volumes.claim('results')


def finish(cluster, kubectl, name, command):
    claim = {'/results': ('results', {'persistentVolumeClaim': {'claimName': 'results'}})}
    create(kubectl, name, Master=rank(1, 'sh', '-ec', command, volumes=claim))
    assert wait_end(cluster, kubectl, name) == 'Succeeded', kubectl('logs', f'{name}-master-0')


@pytest.fixture(scope='module')
def finished(cluster, kubectl, operator):
    finish(cluster, kubectl, 'saver', LEAVE)
    return 'saver'


@pytest.fixture()
def muster(cluster):
    made = Muster()
    made.copy = lambda *words, **options: made.run('cp', *words, '--kubeconfig', cluster.kubeconfig, **options)
    yield made
    assert helpers(cluster) == []
    made.close()


def helpers(cluster):
    pods = cluster.request('GET', '/api/v1/namespaces/default/pods?labelSelector=app.kubernetes.io/name%3Dmuster-cp')['items']
    return [pod['metadata']['name'] for pod in pods if 'deletionTimestamp' not in pod['metadata']]


def check_files(folder):
    assert (folder / 'model.pt').read_text() == 'model\n' and (folder / 'model.pt').stat().st_mtime == 1000000000
    assert (folder / 'model.pt').stat().st_mode & 0o777 == 0o600
    assert (folder / 'deep/folder/a name').read_text() == 'x\n' and (folder / 'empty').is_dir()
    assert (folder / 'latest').is_symlink() and (folder / 'latest').read_text() == 'model\n'
    large = (folder / 'large').read_bytes()
    assert hashlib.sha256(large).hexdigest() == (folder / 'sum').read_text().split()[0]
    assert (folder / 'again').read_bytes() == large and not (folder / 'pipe').exists()


def start_waiting(muster, cluster, name):
    """Starts a copy whose pod never gets its image."""
    process = muster.start('cp', f'{name}:model.pt', '.', '--image', MISSING_IMAGE, '--kubeconfig', cluster.kubeconfig)
    wait_for(lambda: helpers(cluster), 'the pod is there')
    return process


def test_a_finished_jobs_claim_is_read(muster, finished):
    muster.copy(f'{finished}:/results', 'all')
    check_files(muster.work / 'all')
    muster.copy(f'{finished}:model.pt', '.')
    assert (muster.work / 'model.pt').read_text() == 'model\n'
    muster.copy(f'{finished}-master-0:/results/deep/', 'here')
    assert (muster.work / 'here/folder/a name').exists()


def test_it_is_read_when_the_pods_are_gone(muster, cluster, kubectl, finished):
    finish(cluster, kubectl, 'cleaned', 'true')
    kubectl('delete', 'pod', 'cleaned-master-0')
    muster.copy('cleaned:/results', 'all')
    check_files(muster.work / 'all')


def test_what_is_not_there_is_said(muster, finished):
    assert 'the volumes have no none.pt' in muster.copy(f'{finished}:none.pt', '.', code=66).stderr
    assert 'is in none of the volumes that outlive the pod' in muster.copy(f'{finished}:/etc/passwd', '.', code=66).stderr
    assert not (muster.work / 'passwd').exists()
    said = muster.copy(f'{finished}:model.pt', '.', '--image', NO_PYTHON_IMAGE, code=69).stderr
    assert 'cannot serve the files' in said and 'must have python3' in said


def test_ctrl_c_takes_the_pod_away(muster, cluster, finished):
    process = start_waiting(muster, cluster, finished)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130 and helpers(cluster) == []


def test_a_pod_whose_maker_was_killed_goes_with_its_job(muster, cluster, kubectl, operator):
    finish(cluster, kubectl, 'gone', 'true')
    process = start_waiting(muster, cluster, 'gone')
    process.kill()
    process.communicate()
    assert get_pod(cluster, helpers(cluster)[0])['spec']['activeDeadlineSeconds'] <= 3600
    kubectl('delete', 'pytorchjob', 'gone')
    wait_for(lambda: not helpers(cluster), 'the pod went with the job')

"""Clients of other projects, unmodified, against the embedded cluster and a real API server: client-go (clients/main.go), kubectl, and the
kubeflow-training SDK (clients/training.py), with all its calls except train(), which needs models from the internet.

On the embedded cluster ranks run; on the real one `muster operator` creates the pods, and the test writes their statuses.
"""
import itertools
import json
import pathlib
import shlex
import subprocess
import sys

import pytest

from client_programs import Sdk, go_program, sdk_python
from jobs import Jobs, Operator
from kubectl import Kubectl
from program import LIMIT_S, wait_for
from test_verbs import BOTH, job, sides  # noqa: F401 (a fixture)

counter = itertools.count(1)
both = pytest.mark.parametrize('kind', BOTH)
# Under Python 3.11, torchrun of torch 1.13 starts nothing unless it redirects or tees: it does not find a name for the value 0.
TEED = {'PET_REDIRECTS': '1', 'PET_TEE': '1'}
RUN_OF_RANK = 'echo begin; until [ -e {file} ]; do sleep 0.05; done; echo end; exit $(cat {file})'


@pytest.fixture(scope='module')
def go(tmp_path_factory):
    return go_program(tmp_path_factory.mktemp('go'))


@pytest.fixture(scope='module')
def python():
    return sdk_python()


@pytest.fixture(scope='module')
def operated(sides):  # noqa: F811
    """Returns a function that returns a side on which pods of jobs are created."""
    operators = []

    def get(kind):
        side = sides(kind)
        if kind == 'real' and not operators:
            operators.append(Operator(side.cluster.kubeconfig).start())
        return side
    yield get
    for operator in operators:
        operator.close()


class Ranks:
    """The ranks on the embedded cluster: they run until the test gives them an exit code."""

    def __init__(self, folder):
        self.folder = folder

    def command(self, name):
        return RUN_OF_RANK.format(file=self.folder / name)

    def start(self, name, count):
        """Does nothing: the ranks start by themselves."""

    def end(self, name, code):
        (self.folder / f'{name}.new').write_text(str(code))
        (self.folder / f'{name}.new').rename(self.folder / name)


class Told(Ranks):
    """The ranks on the real API server, which has no kubelet: the test writes their statuses."""

    def __init__(self, folder, jobs):
        super().__init__(folder)
        self.jobs = jobs

    def start(self, name, count):
        self.jobs.wait_pods(name, count)
        self.jobs.set_phases(name, 'Running')

    def end(self, name, code):
        self.jobs.set_phases(name, 'Failed' if code else 'Succeeded', code)


class Training:
    """The SDK in a separate namespace."""

    def __init__(self, kind, side, python, folder):
        self.namespace = side.namespace(f'sdk-{next(counter)}')
        self.ranks = Ranks(folder) if kind == 'embedded' else Told(folder, Jobs(side.cluster, self.namespace))
        self.sdk = Sdk(python, side.kubeconfig(self.namespace), self.namespace)

    def create(self, name, workers=1, policy=None, **run):
        made = job(name, self.ranks.command(name), workers, **run)
        for replica in made['spec']['pytorchReplicaSpecs'].values():
            replica.update({'restartPolicy': policy} if policy else {})
        self.sdk('create_job', job=made)
        return made

    def start(self, name, workers=1):
        self.ranks.start(name, 1 + workers)
        return self.wait(name, 'Running')

    def wait(self, name, *conditions):
        return self.sdk('wait_for_job_conditions', name, expected_conditions=conditions, polling_interval=0.1, wait_timeout=LIMIT_S)


@pytest.fixture()
def training(operated, python, kind, tmp_path):
    made = Training(kind, operated(kind), python, tmp_path)
    yield made
    made.sdk.close()


@both
def test_typed_clients_in_go_make_change_evict_watch_and_delete(sides, go, kind):  # noqa: F811
    """The requests of Go's typed clients are protobuf."""
    side = sides(kind)
    namespace = side.namespace('go')
    done = subprocess.run([go, side.kubeconfig(namespace), namespace], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (0, ''), done.stdout + done.stderr


@both
def test_a_job_of_the_sdk_runs_and_succeeds(training):
    sdk = training.sdk
    training.create('good', workers=2)
    sdk('wait_for_job_conditions', 'good', expected_conditions=['Created'], polling_interval=0.1)
    assert sdk('is_job_created', 'good') and not sdk('is_job_succeeded', 'good')
    training.start('good', workers=2)
    assert sdk('is_job_running', 'good') and not sdk('is_job_restarting', 'good')
    assert sorted(sdk('get_job_pod_names', 'good')) == ['good-master-0', 'good-worker-0', 'good-worker-1']
    assert sdk('get_job_pod_names', 'good', is_master=True) == ['good-master-0']
    assert sdk('get_job_pod_names', 'good', replica_type='worker', replica_index=1) == ['good-worker-1']
    workers = sdk('get_job_pods', 'good', replica_type='worker')
    assert {pod['metadata']['name']: pod['status']['phase'] for pod in workers} == {'good-worker-0': 'Running', 'good-worker-1': 'Running'}
    training.ranks.end('good', 0)
    ended = sdk('wait_for_job_conditions', 'good', polling_interval=0.1, callback='look')
    assert ended['status']['replicaStatuses']['Master']['succeeded'] == 1 and sdk('seen')[-1] == 'Succeeded'
    assert sdk('is_job_succeeded', 'good') and not sdk('is_job_failed', 'good') and not sdk('is_job_running', 'good')
    assert [c['type'] for c in sdk('get_job_conditions', 'good')] == ['Created', 'Running', 'Succeeded']
    assert [c['type'] for c in sdk('get_job_conditions', job=sdk('get_job', 'good'))] == ['Created', 'Running', 'Succeeded']


@both
def test_a_job_of_the_sdk_fails(training):
    training.create('bad', workers=0, policy='Never')
    training.start('bad', workers=0)
    training.ranks.end('bad', 3)
    assert training.wait('bad', 'Failed')['metadata']['name'] == 'bad'
    assert training.sdk('is_job_failed', 'bad')
    assert 'is Failed' in training.sdk.fails('wait_for_job_conditions', 'bad')


@both
def test_the_sdk_sees_a_restart(training):
    training.create('again', workers=0, policy='ExitCode')
    training.start('again', workers=0)
    training.ranks.end('again', 130)
    wait_for(lambda: training.sdk('is_job_restarting', 'again'), 'it restarts')
    training.ranks.start('again', 1)
    training.ranks.end('again', 0)
    training.wait('again', 'Succeeded')
    assert not training.sdk('is_job_restarting', 'again')


@both
def test_the_sdk_lists_updates_and_deletes_jobs(training):
    sdk = training.sdk
    made = training.create('one', suspend=True)
    training.create('two', suspend=True)
    assert sorted(found['metadata']['name'] for found in sdk('list_jobs')) == ['one', 'two']
    assert 'already exists' in sdk.fails('create_job', job=made)
    training.wait('one', 'Created')
    assert sdk('get_job_pod_names', 'one') == []
    made['metadata']['labels'] = {'team': 'a'}
    made['spec']['runPolicy']['suspend'] = False
    sdk('update_job', job=made, name='one')
    training.start('one')
    assert sdk('get_job', 'one')['metadata']['labels'] == {'team': 'a'}
    assert sdk('get_job', 'two')['spec']['runPolicy']['suspend'] is True
    sdk('delete_job', 'one')
    assert 'Failed to get PyTorchJob' in wait_for(lambda: gone(sdk, 'one'), 'the job is gone')
    assert 'Failed to delete PyTorchJob' in sdk.fails('delete_job', 'one')
    assert 'Failed to update PyTorchJob' in sdk.fails('update_job', job=made, name='one')


def gone(sdk, name):
    """Returns the text of the error when the job does not exist any more."""
    sdk.ask('get_job', name)
    return sdk.answer().get('text')


@both
def test_a_function_with_parameters_is_trained(training, kind, tmp_path):
    """For two nodes the SDK runs torchrun; for one it runs `python`, a name that not every machine has."""
    sdk = training.sdk
    (tmp_path / 'python').symlink_to(sys.executable)
    path = ':'.join([str(tmp_path), str(pathlib.Path(sys.executable).parent), '/usr/bin', '/bin'])
    for name, workers, more in (('alone', 1, {}), ('pair', 2, {'num_procs_per_worker': 1})):
        sdk('create_job', name=name, train_func='train', parameters={'rate': 0.5}, num_workers=workers, base_image='none', env_vars={'PATH': path, **TEED},
            labels={'made': 'by-sdk'}, resources_per_worker={'cpu': '100m'}, **more)
        if kind == 'real':
            training.start(name, workers - 1)
            training.ranks.end(name, 0)
        training.wait(name, 'Succeeded')
        master, *others = sorted(sdk('get_job_pods', name), key=lambda pod: pod['metadata']['name'])
        assert len(others) == workers - 1 and master['spec']['containers'][0]['command'] == ['bash', '-c']
        assert sdk('get_job', name)['metadata']['labels'] == {'made': 'by-sdk'}
        if kind == 'embedded':
            logs, _ = sdk('get_job_logs', name, is_master=False)
            text = ''.join(logs.values())
            assert all(f'rank {rank} of {workers} learns at 0.5' in text for rank in range(workers)), text


@both
def test_an_image_is_run_in_a_queue(training, kind):
    """The image's own command runs. A laptop reads no image from a registry, and reports what is missing. The SDK looks for the queue, does not find
    it, and continues."""
    sdk = training.sdk
    made = {'base_image': 'none', 'num_workers': 2, 'queue_name': 'nobodys'}
    if kind == 'embedded':
        assert 'muster.dev/command' in sdk.fails('create_job', name='image', **made)
        made['annotations'] = {'muster.dev/command': shlex.join(['sh', '-c', training.ranks.command('image')])}
    sdk('create_job', name='image', **made)
    training.start('image')
    training.ranks.end('image', 0)
    training.wait('image', 'Succeeded')
    assert sdk('get_job', 'image')['metadata']['labels'] == {'kueue.x-k8s.io/queue-name': 'nobodys'}


# The real API server reads logs from kubelets, which this test does not have.
@pytest.mark.parametrize('kind', BOTH[:1])
def test_the_sdk_reads_and_follows_logs(training):
    sdk = training.sdk
    training.create('told')
    training.start('told')
    wait_for(lambda: sdk('get_job_logs', 'told', is_master=False)[0] == {'told-master-0': 'begin\n', 'told-worker-0': 'begin\n'}, 'both have begun')
    sdk.ask('get_job_logs', 'told', follow=True)
    sdk.wait_said('[Pod told-master-0]: begin')
    training.ranks.end('told', 0)
    logs, events = sdk.answer()['value']
    assert logs == {'told-master-0': 'beginend'} and events == {}
    training.wait('told', 'Succeeded')
    assert sdk('get_job_logs', 'told', replica_type='worker', is_master=False)[0] == {'told-worker-0': 'begin\nend\n'}
    _, events = sdk('get_job_logs', 'told', verbose=True)
    assert any('Created pod: told-master-0' in said for said in events['pytorchjob/told']), events


@both
def test_kubectl_drains_a_node(sides, kind):  # noqa: F811
    side = sides(kind)
    namespace = side.namespace('drained')
    kubectl = Kubectl(side.kubeconfig(namespace))
    if kind == 'real':
        side.cluster.request('POST', '/api/v1/nodes', {'metadata': {'name': 'node'}})
    node = kubectl('get', 'nodes', '-o', 'name').strip()
    pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'},
           'spec': {'nodeName': node.partition('/')[2], 'containers': [{'name': 'c', 'image': 'none', 'command': ['sleep', '1000']}]}}
    kubectl('create', '-f', '-', text=json.dumps(pod))
    drained = kubectl('drain', node, '--force', '--grace-period=0', f'--timeout={LIMIT_S}s')
    assert 'p evicted' in drained and 'drained' in drained
    assert kubectl('get', 'pods', '-o', 'name') == ''
    assert 'SchedulingDisabled' in kubectl('get', node)
    kubectl('uncordon', node)
    assert 'SchedulingDisabled' not in kubectl('get', node)

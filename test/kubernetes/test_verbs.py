"""muster's verbs with --kubeconfig and --context, each test against both clusters: a real API server, on which no operator watches jobs, and the
embedded one over TLS, as another machine would use it. The client has its own MUSTER_HOME, in which no controller is started.
"""
import base64
import itertools
import json
import signal
import subprocess

import pytest

from cluster import Cluster
from jobs import install
from program import BUILD, LIMIT_S, Muster, listens, wait_for

counter = itertools.count(1)
BOTH = ['embedded', 'real']


def job(name, command='exit 0', workers=0, **policy):
    container = {'name': 'pytorch', 'image': 'none', 'command': ['sh', '-c', command]}
    replica = {'template': {'spec': {'containers': [container]}}}
    replicas = {'Master': {'replicas': 1, **replica}, **({'Worker': {'replicas': workers, **replica}} if workers else {})}
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': name},
            'spec': {'runPolicy': policy, 'pytorchReplicaSpecs': replicas}}


def never(made):
    """Changes the job so that its Master is not restarted."""
    made['spec']['pytorchReplicaSpecs']['Master']['restartPolicy'] = 'Never'
    return made


class Embedded:
    """The controller of another muster, over TLS."""

    def __init__(self):
        self.muster = Muster()
        self.muster.run('kubeconfig', '--write', 'config')
        self.path = self.muster.work / 'config'

    def namespace(self, name):
        return name  # it is created with the first object in it

    def kubeconfig(self, namespace):
        text = self.path.read_text()
        path = self.path.with_name(f'config-{namespace}')
        path.write_text(text.replace('namespace: default', f'namespace: {namespace}').replace('"namespace":"default"', f'"namespace":"{namespace}"'))
        return path

    def close(self):
        self.muster.close()


class Real:
    def __init__(self):
        self.cluster = Cluster()
        try:
            self.cluster.start()
            install(self.cluster)
        except BaseException:
            self.cluster.close()
            raise

    def namespace(self, name):
        return self.cluster.namespace(name)

    def kubeconfig(self, namespace):
        return self.cluster.write_kubeconfig(f'config-{namespace}', self.cluster.url, namespace=namespace)

    def end(self, namespace, name, state, **more):
        """Writes the job's end into its status, as an operator would."""
        path = f'/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs/{name}/status'
        conditions = [{'type': kind, 'status': 'True', 'reason': kind, 'message': f'the job is {kind}', 'lastTransitionTime': '2026-01-01T00:00:00Z',
                       'lastUpdateTime': '2026-01-01T00:00:00Z'} for kind in ('Created', state)]
        self.cluster.request('PATCH', path, {'status': {'conditions': conditions, **more}}, 'application/merge-patch+json')

    def close(self):
        self.cluster.close()


@pytest.fixture(scope='module')
def sides():
    """Returns a function that returns a side, which is started when a test first asks for it."""
    made = {}

    def get(kind):
        if kind not in made:
            made[kind] = {'embedded': Embedded, 'real': Real}[kind]()
        return made[kind]
    yield get
    for side in made.values():
        side.close()


class Client:
    """muster, configured for a cluster."""

    def __init__(self, side, namespace):
        self.side, self.namespace, self.muster = side, namespace, Muster()
        self.config = side.kubeconfig(namespace)

    def run(self, *words, **options):
        return self.muster.run(*words, '--kubeconfig', self.config, **options)

    def get(self, *words):
        return json.loads(self.run('get', *words, '-o', 'json').stdout)

    def create(self, *objects):
        return self.run('create', '-f', self.muster.write('objects.yaml', *objects))

    def close(self):
        left = list(self.muster.home.iterdir()) if self.muster.home.exists() else []
        assert not left, f'a client of a cluster needs no controller, and there is {left}'
        self.muster.close()


@pytest.fixture()
def client(sides, request):
    side = sides(request.param)
    made = Client(side, side.namespace(f'verbs-{next(counter)}'))
    yield made
    made.close()


both = pytest.mark.parametrize('client', BOTH, indirect=True)
embedded = pytest.mark.parametrize('client', BOTH[:1], indirect=True)
real = pytest.mark.parametrize('client', BOTH[1:], indirect=True)


@both
def test_a_job_is_made_shown_changed_and_deleted(client):
    assert 'pytorchjob.kubeflow.org/a created' in client.create(job('a', workers=2, suspend=True)).stdout
    made = client.get('job', 'a')
    assert made['metadata']['namespace'] == client.namespace
    assert not made['metadata'].get('annotations'), 'a cluster is told nothing of this shell'
    assert client.run('get', 'jobs', '-o', 'name').stdout == 'pytorchjob.kubeflow.org/a\n'
    assert client.run('get', 'jobs').stdout.split()[:3] == ['NAME', 'STATE', 'AGE']
    assert f'Namespace:    {client.namespace}' in client.run('describe', 'job', 'a').stdout
    client.run('scale', 'a', '--workers', 3)
    assert client.get('job', 'a')['spec']['pytorchReplicaSpecs']['Worker']['replicas'] == 3
    client.run('suspend', 'a')
    assert client.get('job', 'a')['spec']['runPolicy']['suspend'] is True
    assert 'deleted' in client.run('delete', 'job', 'a').stdout
    assert client.run('wait', '--for=delete', 'job/a').stdout
    assert 'not found' in client.run('get', 'job', 'a', code=66).stderr


@both
def test_what_get_has_written_can_be_created(client):
    """It has a resourceVersion, which an API server refuses in a new object."""
    client.create(job('a', suspend=True))
    found = client.get('job', 'a')
    client.run('delete', 'job', 'a')
    client.run('wait', '--for=delete', 'job/a')
    client.create(found)
    assert client.get('job', 'a')['metadata']['uid'] != found['metadata']['uid']


@both
def test_apply_changes_what_the_file_changes(client):
    apply = lambda o: client.run('apply', '-f', client.muster.write('o.yaml', o)).stdout.split()[-1]  # noqa: E731
    config = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'c'}, 'data': {'a': '1', 'b': '2'}}
    assert apply(config) == 'created'
    assert apply(config) == 'unchanged'
    assert apply({**config, 'data': {'a': '3'}}) == 'configured'
    assert client.get('configmap', 'c')['data'] == {'a': '3'}


@both
def test_variables_go_into_the_containers(client):
    made = job('env', suspend=True)
    made['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]['env'] = [{'name': 'X', 'value': '0'}]
    client.run('create', '-f', client.muster.write('j.yaml', made), '-e', 'X=1', '-e', 'Y=two words')
    master = client.get('job', 'env')['spec']['pytorchReplicaSpecs']['Master']
    assert master['template']['spec']['containers'][0]['env'] == [{'name': 'X', 'value': '1'}, {'name': 'Y', 'value': 'two words'}]


@both
def test_a_variable_that_no_pod_can_have_is_said(client):
    path = client.muster.write('j.yaml', job('bytes', suspend=True))
    refused = client.run('create', '-f', path, '-e', 'X=secret\udcff', code=64)
    assert 'the value of X is not valid UTF-8' in refused.stderr and 'secret' not in refused.stderr


def of_a_cluster(name):
    """Returns a job with features that a node of a cluster has, and this machine does not."""
    made = job(name, suspend=True, schedulingPolicy={'queue': 'q'})
    spec = made['spec']['pytorchReplicaSpecs']['Master']['template']['spec']
    spec['volumes'] = [{'name': 'token', 'projected': {'sources': []}}, {'name': 'data', 'hostPath': {'path': '/on/the/node', 'type': 'Directory'}}]
    return made


@real
def test_what_only_a_cluster_can_do_is_no_mistake_there(client):
    path = client.muster.write('j.yaml', of_a_cluster('there'))
    assert not client.run('create', '-f', path).stderr
    assert client.get('job', 'there')


@real
def test_lint_for_a_cluster_knows_what_it_can_do(client):
    path = client.muster.write('j.yaml', of_a_cluster('there'))
    assert client.run('lint', path).stdout == f'{path}: ok\n'
    here = client.muster.run('lint', path, code=65).stdout
    assert 'cannot be run on this machine' in here and '/on/the/node' in here


@real
def test_lint_for_a_cluster_asks_its_server(client):
    client.create(job('queued', suspend=True, schedulingPolicy={'queue': 'q'}))
    path = client.muster.write('j.yaml', job('queued', suspend=True, schedulingPolicy={'queue': 'r'}))
    done = client.run('lint', path, code=65)
    assert 'spec.runPolicy.schedulingPolicy.queue is immutable' in done.stdout and 'j.yaml:' in done.stdout and '1 error' in done.stderr
    assert client.get('job', 'queued')['spec']['runPolicy']['schedulingPolicy'] == {'queue': 'q'}
    missing = client.run('lint', '-n', 'nowhere', client.muster.write('k.yaml', job('new')), '-o', 'json', code=65)
    assert json.loads(missing.stdout)[0]['message'] == 'namespaces "nowhere" not found'
    assert client.run('lint', client.muster.write('l.yaml', job('new'))).stdout.endswith('l.yaml: ok\n')
    assert [item['metadata']['name'] for item in client.get('jobs')['items']] == ['queued']
    refused = client.side.cluster.write_kubeconfig('refused', 'https://127.0.0.1:1')
    assert 'no answer' in client.muster.run('lint', path, '--kubeconfig', refused, code=69).stderr


@both
def test_several_objects_are_made_whole_or_not_at_all(client):
    config = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'first'}}
    client.create({**config, 'metadata': {'name': 'second'}})
    refused = client.run('create', '-f', client.muster.write('two.yaml', config, {**config, 'metadata': {'name': 'second'}}), code=None)
    assert refused.returncode != 0 and 'already exists' in refused.stderr
    assert [item['metadata']['name'] for item in client.get('configmaps')['items'] if item['metadata']['name'] in ('first', 'second')] == ['second']


@both
@pytest.mark.parametrize('words, said', [
    (['create', '-f', 'j', '--network', 'private'], '--network is for jobs of this machine'),
    (['create', '-f', 'j', '--image', 'a=b'], 'on a cluster the image or the file says what it runs'),
    (['run', '-n', '2', '--', 'true'], 'need an image'),
    (['run', '-n', 'gpu', '--image', 'i', '--', 'true'], 'counts what this machine has'),
    (['run', '-f', 'j', '--results', 'r'], '--results is for jobs of this machine'),
    (['train', '--job_name=t', '--', 'true'], 'need an image'),
    (['train', '--job_name=t', '--worker_image=i', '--results', 'r', '--', 'true'], '--results is for jobs of this machine'),
    (['logs', 'a', '--run', '2'], 'a cluster keeps no earlier runs'),
    (['stacks', 'a'], 'works on this machine only'),
    (['get', 'pods', '--context', 'nowhere'], 'no context "nowhere"'),
])
def test_what_a_cluster_has_not_is_said(client, words, said):
    at = words.index('--') if '--' in words else len(words)
    done = client.muster.run(*words[:at], '--kubeconfig', client.config, *words[at:], code=None)
    assert done.returncode in (64, 78) and said in done.stderr, done


@both
def test_the_context_is_found_by_the_variable(client):
    client.create({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'here'}})
    name = {'embedded': 'muster', 'real': 'test'}['real' if isinstance(client.side, Real) else 'embedded']
    done = client.muster.run('get', 'configmap', 'here', '-o', 'name', '--context', name, env={'KUBECONFIG': f'/nowhere:{client.config}'})
    assert done.stdout == 'configmap/here\n'


@real
def test_tokens_certificates_and_servers_that_are_wrong(client):
    cluster = client.side.cluster
    token = cluster.write_kubeconfig('token', cluster.url, user={'token': 'wrong-secret'})
    done = client.muster.run('get', 'pods', '--kubeconfig', token, code=None)
    assert done.returncode == 77 and 'Unauthorized' in done.stderr and 'wrong-secret' not in done.stderr
    nobody = cluster.write_kubeconfig('nobody', cluster.url, user={})
    assert 'cannot list resource "pods"' in client.muster.run('get', 'pods', '--kubeconfig', nobody, code=77).stderr
    config = json.loads(cluster.kubeconfig.read_text())
    del config['clusters'][0]['cluster']['certificate-authority-data']
    stranger = client.muster.write('stranger', config)
    done = client.muster.run('get', 'pods', '--kubeconfig', stranger, code=69)
    assert f'no answer from the API server {cluster.url}' in done.stderr and 'certificate' in done.stderr
    config['clusters'][0]['cluster']['server'] = 'https://127.0.0.1:1'
    done = client.muster.run('get', 'pods', '--kubeconfig', client.muster.write('refused', config), code=69)
    assert 'no answer from the API server https://127.0.0.1:1' in done.stderr


@real
def test_a_token_file_is_read(client):
    cluster = client.side.cluster
    (cluster.folder / 'token').write_text(account_token(cluster, client.namespace, 'me') + '\n')
    config = cluster.write_kubeconfig('file', cluster.url, user={'tokenFile': 'token'}, namespace=client.namespace)

    def is_allowed():
        return client.muster.run('get', 'pods', '--kubeconfig', config, code=None).returncode == 0
    wait_for(is_allowed, 'the account may list pods')


def account_token(cluster, namespace, name, resources=('pods',), verbs=('list',)):
    """Creates an account that may list pods, or has the given rights; returns its token."""
    rbac = f'/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}'
    cluster.request('POST', f'/api/v1/namespaces/{namespace}/serviceaccounts', {'metadata': {'name': name}})
    cluster.request('POST', f'{rbac}/roles', {'metadata': {'name': name}, 'rules': [{'apiGroups': ['', 'kubeflow.org'], 'resources': resources, 'verbs': verbs}]})
    cluster.request('POST', f'{rbac}/rolebindings',
                    {'metadata': {'name': name}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'Role', 'name': name},
                     'subjects': [{'kind': 'ServiceAccount', 'name': name, 'namespace': namespace}]})
    return cluster.request('POST', f'/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token',
                           {'apiVersion': 'authentication.k8s.io/v1', 'kind': 'TokenRequest', 'spec': {}})['status']['token']


PLUGIN = """#!/bin/sh
cd "$(dirname "$0")"
echo run >>runs
token=$(cat "token-$(wc -l <runs)" || cat token-last)
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "'"$token"'"}}'
"""


@real
def test_an_exec_plugin_says_who_we_are(client):
    cluster, folder = client.side.cluster, client.muster.work
    token = account_token(cluster, client.namespace, 'plugged')
    (folder / 'plugin').write_text(PLUGIN)
    (folder / 'plugin').chmod(0o700)
    plugin = {'exec': {'apiVersion': 'client.authentication.k8s.io/v1', 'command': str(folder / 'plugin'), 'interactiveMode': 'Never'}}
    config = cluster.write_kubeconfig('exec', cluster.url, user=plugin, namespace=client.namespace)
    (folder / 'token-1').write_text('stale-secret')
    (folder / 'token-last').write_text(token)

    def is_allowed():
        (folder / 'runs').write_text('')
        return client.muster.run('get', 'pods', '--kubeconfig', config, code=None).returncode == 0
    wait_for(is_allowed, 'the account may list pods')
    assert (folder / 'runs').read_text() == 'run\nrun\n', 'refused once, it is asked once more'
    (folder / 'token-last').write_text('stale-secret')
    done = client.muster.run('get', 'pods', '--kubeconfig', config, code=77)
    assert 'Unauthorized' in done.stderr and 'secret' not in done.stderr


@real
def test_a_log_that_wants_a_credential_again_says_so(client):
    cluster, folder = client.side.cluster, client.muster.work
    token = account_token(cluster, client.namespace, 'reader', ['pytorchjobs', 'pods', 'pods/log'], ['get', 'list', 'watch'])
    answer = {'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',
              'status': {'token': token, 'expirationTimestamp': '2020-01-01T00:00:00Z'}}
    (folder / 'answer').write_text(json.dumps(answer))
    script = f'cd {folder}; echo run >>runs; cat answer'
    plugin = {'exec': {'apiVersion': answer['apiVersion'], 'command': 'sh', 'args': ['-c', script], 'interactiveMode': 'Never'}}
    config = cluster.write_kubeconfig('again', cluster.url, user=plugin, namespace=client.namespace)
    pods = f'/api/v1/namespaces/{client.namespace}/pods'
    cluster.request('POST', pods, {'metadata': {'name': 'p'}, 'spec': {'nodeName': 'nowhere', 'containers': [{'name': 'c', 'image': 'none'}]}})
    running = {'name': 'c', 'image': 'none', 'imageID': '', 'ready': True, 'restartCount': 0, 'state': {'running': {}}}
    cluster.request('PATCH', f'{pods}/p/status', {'status': {'phase': 'Running', 'containerStatuses': [running]}}, 'application/merge-patch+json')
    process = client.muster.start('logs', 'p', '-f', '--kubeconfig', config)
    wait_for(lambda: (folder / 'runs').exists() and len((folder / 'runs').read_text()) > 40, 'its log is asked for, again and again')
    (folder / 'answer').unlink()
    said = next(line for line in process.stderr if 'is asked for again' in line)
    assert "p's log cannot be read" in said and "the user's exec plugin sh" in said
    process.kill()
    process.communicate()


@embedded
def test_run_streams_the_logs_and_has_the_status(client):
    path = client.muster.write('j.yaml', never(job('run', 'echo "$0 says $X"; exit 3')))
    done = client.run('run', '-f', path, '-e', 'X=hello', code=3)
    assert '[rank 0] sh says hello' in done.stdout and 'failed' in done.stderr
    assert client.run('logs', 'run').stdout == '[rank 0] sh says hello\n'
    assert client.run('logs', 'run-master-0').stdout == 'sh says hello\n'


@embedded
def test_logs_are_followed_over_a_restart(client):
    command = 'if [ -e again ]; then echo second; else touch again; echo first; exit 1; fi'
    made = job('twice', f'cd "$(dirname "$MUSTER_HOME")" 2>/dev/null; {command}')
    made['spec']['pytorchReplicaSpecs']['Master']['restartPolicy'] = 'OnFailure'
    client.create(made)
    assert client.run('logs', 'twice', '-f').stdout.split('\n')[-2] == '[rank 0] second'


@real
def test_run_follows_what_the_operator_says(client):
    path = client.muster.write('j.yaml', job('run'))
    process = client.muster.start('run', '-f', path, '--kubeconfig', client.config)
    wait_for(lambda: client.get('jobs')['items'], 'the job is there')
    client.side.end(client.namespace, 'run', 'Succeeded')
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0 and 'succeeded' in err, (out, err)


@real
def test_ctrl_c_deletes_a_job_that_no_operator_ends(client):
    path = client.muster.write('j.yaml', job('endless'))
    process = client.muster.start('run', '-f', path, '--kubeconfig', client.config)
    wait_for(lambda: client.get('jobs')['items'] and listens(process), 'the job is followed')
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130 and 'does not end job endless when asked to: it is deleted' in err, err
    assert client.get('jobs')['items'] == []


@real
def test_run_says_that_no_operator_looks_at_the_job(client):
    path = client.muster.write('j.yaml', job('alone'))
    process = client.muster.start('run', '-f', path, '--kubeconfig', client.config)
    assert process.stderr.readline().startswith('muster: warning: for 10 s no operator has looked at job alone')
    client.side.end(client.namespace, 'alone', 'Succeeded')
    assert process.communicate(timeout=LIMIT_S) and process.returncode == 0


TRAIN = ('--job_name=t', '--num_workers=2', '--worker_image=team/mnist:1', '--worker_resource_request=cpu=0.1,memory=64Mi')


def owner_of_token(client):
    """Returns the uid of the only owner, a job, of the Secret of job t."""
    owner, = client.get('secret', 't-token')['metadata']['ownerReferences']
    assert (owner['kind'], owner['name']) == ('PyTorchJob', 't')
    return owner['uid']


@embedded
def test_train_on_a_cluster_is_followed_to_its_end(client):
    """The coordinator and its workers are pods of the cluster, and the token is in their Secret: they get no variables of this shell except named
    ones."""
    worker = BUILD / 'tests' / 'elastic_worker'
    words = [*TRAIN, f'--job_command=echo "N=$N TOKEN=$MUSTER_COORDINATOR_TOKEN"; exec {worker} 97 2 4 2 0', '-e', 'N=7', '-e', f'PATH={BUILD}/bin:/usr/bin:/bin']
    done = client.run('train', *words)
    token = base64.b64decode(client.get('secret', 't-token')['data']['token']).decode()
    assert f'[rank 0] N=7 TOKEN={token}' in done.stdout and 'succeeded' in done.stderr
    assert 'done: 194 records' in done.stdout
    assert token not in json.dumps(client.get('job', 't'))
    assert owner_of_token(client) == client.get('job', 't')['metadata']['uid']
    assert client.get('job', 't')['metadata']['namespace'] == client.namespace
    done = client.run('train', *TRAIN, '--job_command=exit 3', '-e', f'PATH={BUILD}/bin:/usr/bin:/bin', code=3)
    assert 'failed' in done.stderr
    assert base64.b64decode(client.get('secret', 't-token')['data']['token']).decode() != token
    assert owner_of_token(client) == client.get('job', 't')['metadata']['uid']


@real
@pytest.mark.parametrize('state', ['Succeeded', 'Failed'])
def test_train_follows_what_the_operator_says(client, state):
    process = client.muster.start('train', *TRAIN, '--kubeconfig', client.config, '--', 'python3', 'train.py')
    wait_for(lambda: client.get('jobs')['items'], 'the job is there')
    made = client.get('job', 't')
    master = made['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]
    assert master['command'][:5] == ['muster', 'keep', '--', 'muster', 'coordinator'] and made['metadata']['namespace'] == client.namespace
    token = next(entry for entry in master['env'] if entry['name'] == 'MUSTER_COORDINATOR_TOKEN')
    assert token['valueFrom']['secretKeyRef']['name'] == client.get('secret', 't-token')['metadata']['name']
    client.side.end(client.namespace, 't', state)
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode == 0) == (state == 'Succeeded') and state.lower() in err, (out, err)


@real
def test_elasticdl_submits_to_a_cluster_and_returns(client):
    """A running job keeps its token: a second job of the same name is refused before anything is created."""
    def elasticdl(code):
        done = subprocess.run([BUILD / 'bin/elasticdl', 'train', *TRAIN, '--job_command=python3 train.py', '--kubeconfig', client.config], env=client.muster.env,
                              cwd=client.muster.work, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == code, done
        return done.stderr
    assert 'job t is submitted: pods elasticdl-t-master and t-edljob-worker-0 to 1; ' in elasticdl(0)
    token, first = client.get('secret', 't-token')['data']['token'], client.get('job', 't')['metadata']['uid']
    assert owner_of_token(client) == first
    elasticdl(73)
    assert client.get('secret', 't-token')['data']['token'] == token
    client.side.end(client.namespace, 't', 'Succeeded')
    elasticdl(0)
    assert client.get('secret', 't-token')['data']['token'] != token
    assert owner_of_token(client) == client.get('job', 't')['metadata']['uid'] != first

"""The real kubectl drives a controller of this machine: create, get, watch, describe, logs, scale, wait, delete, over TLS.

Needs kubectl; without it each test is skipped, with that reason. One controller for the whole file, in a
MUSTER_HOME of its own.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess

import pytest
from conftest import LIMIT_S, Muster, job, shell, wait_for

SLEEP = shell('exec sleep 600')

pytestmark = pytest.mark.skipif(not shutil.which('kubectl'), reason='kubectl is not installed')


class Cluster:
    """One controller and a kubectl that talks to it."""

    def __init__(self, muster):
        self.muster = muster
        self.home = muster.home
        self.muster.run('up')
        self.config = muster.folder / 'kubeconfig'
        self.config.write_text(self.muster.run('kubeconfig').stdout)
        self.env = dict(muster.env, KUBECONFIG=str(self.config), HOME=str(muster.folder))

    def try_kubectl(self, *words, text=None, env=None):
        return subprocess.run(['kubectl', *words], env=env or self.env, input=text, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)

    def kubectl(self, *words, text=None):
        done = self.try_kubectl(*words, text=text)
        assert done.returncode == 0, f'kubectl {" ".join(words)}: {done.stderr}{self.muster.log()}'
        return done.stdout

    def create(self, *objects):
        return self.kubectl('create', '-f', '-', text='\n---\n'.join(map(json.dumps, objects)))

    def get(self, kind, name):
        return json.loads(self.kubectl('get', kind, name, '-o', 'json'))

    def phase(self, pod):
        """Returns the phase of the pod, or '' if the pod does not exist yet."""
        return self.kubectl('get', 'pod', pod, '-o', 'jsonpath={.status.phase}', '--ignore-not-found')

    def pods_of(self, name):
        return self.kubectl('get', 'pods', '-o', 'name', '-l', f'job-name={name}').split()

    def controller_pid(self):
        return json.loads(self.kubectl('get', '--raw', '/muster/v1/status'))['pid']


@pytest.fixture(scope='module')
def cluster():
    muster = Muster()
    yield Cluster(muster)
    muster.close()


def test_a_job_from_create_to_delete(cluster):
    steps = 'for i in 1 2 3; do echo step $i; sleep 0.1; done'
    watch = subprocess.Popen(['kubectl', 'get', 'pods', '-w', '--no-headers'], env=cluster.env,
                             stdout=subprocess.PIPE, text=True)
    try:
        assert 'pytorchjob.kubeflow.org/life created' in cluster.create(job('life', shell(steps), workers=1))
        wait_for(lambda: cluster.phase('life-master-0') not in ('', 'Pending'), 'the start of the master')
        assert cluster.kubectl('logs', '-f', 'life-master-0') == 'step 1\nstep 2\nstep 3\n'
        cluster.kubectl('wait', '--for=condition=Succeeded', 'pytorchjob/life', f'--timeout={LIMIT_S}s')
        seen = ''
        while 'Completed' not in seen:
            line = watch.stdout.readline()
            assert line, 'the watch ended early'
            seen += line
    finally:
        watch.kill()
        watch.wait()

    table = cluster.kubectl('get', 'pytorchjobs').split()
    assert table[:3] == ['NAME', 'STATE', 'AGE'] and table[3:5] == ['life', 'Succeeded']
    wide = cluster.kubectl('get', 'pods', '-o', 'wide').splitlines()
    assert wide[0].split()[:7] == ['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE', 'IP', 'NODE']
    assert '0/1' in wide[1] and 'Completed' in wide[1]
    described = cluster.kubectl('describe', 'pytorchjob', 'life')
    assert 'SuccessfulCreatePod' in described and 'PyTorchJobSucceeded' in described
    assert 'Exit Code:    0' in cluster.kubectl('describe', 'pod', 'life-master-0')
    assert 'kind: PyTorchJob' in cluster.kubectl('get', 'pytorchjob', 'life', '-o', 'yaml')
    assert 'life-master-0' in cluster.kubectl('get', 'pods', '-l', 'controller-name=pytorch-operator')
    assert 'SuccessfulCreatePod' in cluster.kubectl('get', 'events')
    assert cluster.kubectl('logs', 'life-master-0', '--tail=1') == 'step 3\n'

    assert 'deleted' in cluster.kubectl('delete', 'pytorchjob', 'life')
    wait_for(lambda: not cluster.pods_of('life'), 'the end of the pods')


def all_ranks(cluster, name, script):
    """Creates a job whose verdict depends on all its ranks, as `muster run -n` makes them."""
    made = cluster.muster.run('run', '-n', 2, '--name', name, '--dry-run', '-o', 'json', '--', *shell(script)).stdout
    cluster.kubectl('create', '-f', '-', text=made)


def test_wait_says_of_all_ranks_whether_they_ended_well(cluster):
    all_ranks(cluster, 'good', 'exit 0')
    cluster.kubectl('wait', '--for=condition=Succeeded', 'pytorchjob/good', f'--timeout={LIMIT_S}s')
    all_ranks(cluster, 'bad', 'exit $((RANK*3))')
    cluster.kubectl('wait', '--for=condition=Failed', 'pytorchjob/bad', f'--timeout={LIMIT_S}s')
    assert 'condition not met' in cluster.try_kubectl('wait', '--for=condition=Succeeded', 'pytorchjob/bad', '--timeout=0s').stderr
    assert 'Failed' in cluster.kubectl('get', 'pytorchjob', 'bad').split()
    statuses = cluster.get('pytorchjob', 'bad')['status']['replicaStatuses']
    assert (statuses['Master'].get('succeeded'), statuses['Worker'].get('failed')) == (1, 1)


def test_kubectl_sees_how_muster_run_ended(cluster):
    done = cluster.muster.run('run', '-n', 2, '--name', 'seen', '--', *shell('exit $((RANK*3))'), code=3)
    assert 'seen-worker-0 (rank 1) exited with code 3' in done.stdout + done.stderr
    cluster.kubectl('wait', '--for=condition=Failed', 'pytorchjob/seen', f'--timeout={LIMIT_S}s')
    assert cluster.try_kubectl('wait', '--for=condition=Succeeded', 'pytorchjob/seen', '--timeout=0s').returncode == 1


def test_deleting_a_running_job_ends_its_processes(cluster):
    cluster.create(job('cut', SLEEP, workers=1))
    wait_for(lambda: cluster.phase('cut-master-0') == 'Running', 'the start')
    cluster.kubectl('delete', 'pytorchjob', 'cut')
    wait_for(lambda: not cluster.pods_of('cut'), 'the end of the pods')


def processes_with(word):
    """Returns the PIDs of the processes with the word in their command line."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / 'cmdline').read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass  # it ended meanwhile
    return found


def start_slow_to_end(cluster, name, at_term='sleep 0.5'):
    """Starts a job whose two ranks run `at_term` after SIGTERM and then end; returns a word by which their processes are found."""
    word = f'{name}-{os.getpid()}'
    cluster.create(job(name, shell(f': {word}; trap "{at_term}; exit 0" TERM; while :; do sleep 0.1; done'), workers=1))
    wait_for(lambda: len(processes_with(word)) >= 2 and cluster.phase(f'{name}-worker-0') == 'Running', 'the start')
    return word


def test_in_the_foreground_delete_returns_when_the_processes_are_gone(cluster):
    word = start_slow_to_end(cluster, 'last')
    watch = subprocess.Popen(['kubectl', 'get', 'pytorchjobs', 'last', '-w', '--output-watch-events', '-o', 'jsonpath={.type} {.object.metadata.finalizers}{"\\n"}'],
                             env=cluster.env, stdout=subprocess.PIPE, text=True)
    try:
        assert watch.stdout.readline().startswith('ADDED')
        assert 'deleted' in cluster.kubectl('delete', 'pytorchjob', 'last', '--cascade=foreground')
        assert not processes_with(word) and not cluster.pods_of('last')
        seen = [watch.stdout.readline().strip()]
        while not seen[-1].startswith('DELETED'):
            seen.append(watch.stdout.readline().strip())
            assert seen[-1], 'the watch ended early'
    finally:
        watch.kill()
        watch.wait()
    assert 'MODIFIED ["foregroundDeletion"]' in seen


def test_a_job_that_goes_in_the_foreground_is_seen_terminating(cluster, tmp_path):
    seen = tmp_path / 'seen'
    word = start_slow_to_end(cluster, 'ending', f'until [ -e {seen} ]; do sleep 0.1; done')
    cluster.kubectl('delete', 'pytorchjob', 'ending', '--cascade=foreground', '--wait=false')
    metadata = cluster.get('pytorchjob', 'ending')['metadata']
    assert metadata['deletionTimestamp'] and metadata['finalizers'] == ['foregroundDeletion']
    assert {line.split()[2] for line in cluster.kubectl('get', 'pods', '-l', 'job-name=ending', '--no-headers').splitlines()} == {'Terminating'}
    seen.touch()
    cluster.kubectl('wait', '--for=delete', 'pytorchjob/ending', f'--timeout={LIMIT_S}s')
    assert not processes_with(word)


def test_orphans_keep_running(cluster):
    word = start_slow_to_end(cluster, 'parent')
    cluster.kubectl('delete', 'pytorchjob', 'parent', '--cascade=orphan')
    assert cluster.try_kubectl('get', 'pytorchjob', 'parent').returncode == 1
    assert 'ownerReferences' not in cluster.get('pod', 'parent-worker-0')['metadata']
    assert len(processes_with(word)) >= 2
    cluster.kubectl('delete', 'pods', '-l', 'job-name=parent')
    assert not processes_with(word)


def test_a_finalizer_of_somebody_holds_a_job(cluster):
    held = job('held', SLEEP)
    held['metadata']['finalizers'] = ['example.com/hold']
    cluster.create(held)
    cluster.kubectl('delete', 'pytorchjob', 'held', '--cascade=foreground', '--wait=false')
    wait_for(lambda: not cluster.pods_of('held'), 'the end of the pods')
    wait_for(lambda: cluster.get('pytorchjob', 'held')['metadata']['finalizers'] == ['example.com/hold'], 'the end of the wait')
    cluster.kubectl('patch', 'pytorchjob', 'held', '--type=merge', '-p', '{"metadata":{"finalizers":null}}')
    assert cluster.try_kubectl('get', 'pytorchjob', 'held').returncode == 1


def test_scale_label_annotate_patch(cluster):
    cluster.create(job('change', SLEEP, workers=1))
    assert 'scaled' in cluster.kubectl('scale', 'pytorchjob/change', '--replicas=3')
    cluster.kubectl('label', 'pytorchjob', 'change', 'team=red')
    cluster.kubectl('annotate', 'pytorchjob', 'change', 'note=hello world')
    cluster.kubectl('patch', 'pytorchjob', 'change', '--type=merge', '-p', '{"spec":{"runPolicy":{"cleanPodPolicy":"All"}}}')
    cluster.kubectl('patch', 'pytorchjob', 'change', '--type=json', '-p',
                    '[{"op":"add","path":"/spec/runPolicy/ttlSecondsAfterFinished","value":600}]')
    stored = cluster.get('pytorchjob', 'change')
    assert stored['spec']['pytorchReplicaSpecs']['Worker']['replicas'] == 3
    assert stored['metadata']['labels']['team'] == 'red'
    assert stored['metadata']['annotations']['note'] == 'hello world'
    assert stored['spec']['runPolicy'] == {'cleanPodPolicy': 'All', 'ttlSecondsAfterFinished': 600}
    wait_for(lambda: cluster.try_kubectl('get', 'pod', 'change-worker-2').returncode == 0, 'the third worker')
    cluster.kubectl('delete', 'pytorchjob', 'change')


def test_apply_and_server_side_apply(cluster):
    config = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'c'}, 'data': {'a': '1', 'b': '2'}}
    assert 'created' in cluster.kubectl('apply', '-f', '-', text=json.dumps(config))
    config['data'] = {'a': '3'}
    assert 'configured' in cluster.kubectl('apply', '-f', '-', text=json.dumps(config))
    assert cluster.get('configmap', 'c')['data'] == {'a': '3'}
    assert 'unchanged' in cluster.kubectl('apply', '-f', '-', text=json.dumps(config))
    assert 'serverside-applied' in cluster.kubectl('apply', '--server-side', '-f', '-', text=json.dumps(job('applied', ['true'])))
    assert 'dry run' in cluster.kubectl('delete', 'configmap', 'c', '--dry-run=server')
    cluster.kubectl('delete', 'configmap', 'c')
    cluster.kubectl('delete', 'pytorchjob', 'applied')


@pytest.mark.parametrize('object_', [
    {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'turns'}, 'data': {'a': '<1>', 'b': '2'}},
    job('turns', SLEEP, run_policy={'backoffLimit': 3, 'cleanPodPolicy': 'All'})], ids=['ConfigMap', 'PyTorchJob'])
def test_kubectl_and_muster_apply_in_turns(cluster, object_):
    section, gone, kept = ('data', 'a', 'b') if 'data' in object_ else ('spec', 'runPolicy', 'pytorchReplicaSpecs')

    def by_kubectl(thing):
        return cluster.kubectl('apply', '-f', '-', text=json.dumps(thing))

    def by_muster(thing):
        return cluster.muster.run('apply', '-f', '-', stdin=json.dumps(thing)).stdout

    less = dict(object_, **{section: {kept: object_[section][kept]}})
    for one, other in ((by_kubectl, by_muster), (by_muster, by_kubectl)):
        assert 'created' in one(object_)
        assert 'configured' in other(less)
        stored = cluster.get(object_['kind'], 'turns')
        assert gone not in stored[section] and kept in stored[section]
        assert 'unchanged' in one(less)
        assert 'configured' in one(object_)
        assert gone in cluster.get(object_['kind'], 'turns')[section]
        cluster.kubectl('delete', object_['kind'], 'turns')


def test_refusals_read_as_on_a_cluster(cluster):
    cluster.create(job('twice', SLEEP))
    again = cluster.try_kubectl('create', '-f', '-', text=json.dumps(job('twice', SLEEP)))
    assert 'Error from server (AlreadyExists)' in again.stderr
    assert 'pytorchjobs.kubeflow.org "twice" already exists' in again.stderr
    missing = cluster.try_kubectl('get', 'pytorchjob', 'missing')
    assert missing.stderr == 'Error from server (NotFound): pytorchjobs.kubeflow.org "missing" not found\n'
    bad = job('bad', SLEEP, workers=1)
    bad['spec']['pytorchReplicaSpecs']['Master']['replicas'] = 2
    bad['spec']['pytorchReplicaSpecs']['Worker']['replicas'] = 0
    invalid = cluster.try_kubectl('create', '-f', '-', text=json.dumps(bad))
    assert 'The PyTorchJob "bad" is invalid:' in invalid.stderr
    assert '* spec.pytorchReplicaSpecs.Master.replicas:' in invalid.stderr
    assert '* spec.pytorchReplicaSpecs.Worker.replicas:' in invalid.stderr
    waited = cluster.try_kubectl('wait', '--for=condition=Succeeded', 'pytorchjob/twice', '--timeout=1s')
    assert 'timed out waiting' in waited.stderr
    cluster.kubectl('delete', 'pytorchjob', 'twice')


def test_what_kubectl_makes_from_its_command_line(cluster):
    cluster.kubectl('create', 'namespace', 'team')
    cluster.kubectl('create', 'configmap', 'made', '-n', 'team', '--from-literal=a=b')
    cluster.kubectl('create', 'secret', 'generic', 'made', '-n', 'team', '--from-literal=word=hello')
    secret = json.loads(cluster.kubectl('get', 'secret', 'made', '-n', 'team', '-o', 'json'))
    assert secret['data'] == {'word': 'aGVsbG8='} and secret['type'] == 'Opaque'
    cluster.kubectl('delete', 'namespace', 'team')
    assert cluster.try_kubectl('get', 'secret', 'made', '-n', 'team').returncode != 0


def test_a_service_is_made_from_the_command_line(cluster):
    """kubectl sends the service in protobuf."""
    cluster.kubectl('create', 'service', 'clusterip', 'made', '--tcp', '80:8080')
    made = cluster.get('service', 'made')['spec']
    assert made['clusterIP'] == 'None' and made['selector'] == {'app': 'made'}
    assert made['ports'] == [{'name': '80-8080', 'port': 80, 'protocol': 'TCP', 'targetPort': 8080}]


def told(cluster, words):
    """Returns how often events with these words were reported."""
    events = json.loads(cluster.kubectl('get', 'events', '-o', 'json'))['items']
    return sum(event['count'] for event in events if words in event['message'])


def test_a_cordoned_node_takes_no_pods(cluster):
    """Nor does it take any after a restart of the controller; the pods that run already go on."""
    node = cluster.kubectl('get', 'nodes', '-o', 'name').strip()
    cluster.create(job('before', SLEEP))
    wait_for(lambda: cluster.muster.condition('before') == 'Running', 'the rank runs')
    cluster.kubectl('cordon', node)
    cluster.create(job('after', shell('true')))
    waits = 'is cordoned and takes no pods'
    wait_for(lambda: waits in cluster.kubectl('get', 'events'), 'an event says what the pod waits for')
    pid = cluster.controller_pid()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not pathlib.Path('/proc', str(pid), 'exe').exists(), 'the end of the controller')
    cluster.muster.run('up')
    assert 'Ready,SchedulingDisabled' in cluster.kubectl('get', node)
    wait_for(lambda: told(cluster, waits) == 2, 'the controller that came says it, too')
    assert cluster.get('pod', 'after-master-0')['status'].get('phase', 'Pending') == 'Pending'
    cluster.kubectl('uncordon', node)
    wait_for(lambda: cluster.muster.condition('after') == 'Succeeded', 'the pod that waited runs')
    assert cluster.muster.condition('before') == 'Running' and cluster.get('pod', 'before-master-0')['status']['containerStatuses'][0]['restartCount'] == 0
    cluster.kubectl('delete', 'pytorchjob', 'before', 'after')


def test_unknown_fields_are_refused_or_warned_about(cluster):
    typing_error = job('typo', SLEEP, run_policy={'cleanPodPolicyy': 'All'})
    text = json.dumps(typing_error)
    strict = cluster.try_kubectl('create', '-f', '-', text=text)
    assert 'strict decoding error: unknown field "spec.runPolicy.cleanPodPolicyy"' in strict.stderr and strict.returncode == 1
    assert cluster.try_kubectl('get', 'pytorchjob', 'typo').returncode == 1
    warned = cluster.try_kubectl('create', '--validate=warn', '-f', '-', text=text)
    assert 'Warning: unknown field "spec.runPolicy.cleanPodPolicyy"' in warned.stderr and 'created' in warned.stdout
    cluster.kubectl('delete', 'pytorchjob', 'typo')


def test_a_list_is_several_objects(cluster):
    config = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'listed'}, 'data': {'a': 'b'}}
    cluster.create(config)
    cluster.create(job('listed', SLEEP))
    printed = cluster.kubectl('get', 'configmap/listed', 'pytorchjob/listed', '-o', 'yaml')
    assert 'kind: List' in printed
    cluster.kubectl('delete', 'configmap/listed', 'pytorchjob/listed')
    out = cluster.muster.run('apply', '-f', '-', stdin=printed).stdout
    assert out == 'configmap/listed created\npytorchjob.kubeflow.org/listed created\n'
    assert len(cluster.muster.run('delete', '-f', '-', stdin=printed).stdout.splitlines()) == 2


def test_a_wrong_token_is_refused(cluster):
    wrong = cluster.muster.folder / 'wrong'
    token = (cluster.home / 'token').read_text().strip()
    wrong.write_text(cluster.config.read_text().replace(token, token[::-1]))
    done = cluster.try_kubectl('get', 'pods', env=dict(cluster.env, KUBECONFIG=str(wrong)))
    assert done.returncode != 0 and 'Unauthorized' in done.stderr


def open_watch(cluster, over_tls):
    request = 'GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: muster\r\nAuthorization: Bearer {}\r\n\r\n'
    if over_tls:
        port = int(json.loads((cluster.home / 'server.json').read_text())['server'].rsplit(':', 1)[1])
        context = ssl.create_default_context(cafile=cluster.home / 'tls' / 'cert.pem')
        plain = socket.create_connection(('127.0.0.1', port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = context.wrap_socket(plain, server_hostname='127.0.0.1')
    else:
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(str(cluster.home / 'api.sock'))
    stream.sendall(request.format((cluster.home / 'token').read_text().strip()).encode())
    assert b' 200 ' in stream.recv(4096)
    return stream


@pytest.mark.parametrize('over_tls', [False, True], ids=['socket', 'tls'])
def test_watchers_that_leave_are_forgotten(cluster, over_tls):
    descriptors = pathlib.Path('/proc', str(cluster.controller_pid()), 'fd')
    watchers = [open_watch(cluster, over_tls) for _ in range(200)]
    opened = len(os.listdir(descriptors))
    assert opened > 200
    for watcher in watchers:
        watcher.close()
    wait_for(lambda: len(os.listdir(descriptors)) <= opened - 200, 'the end of 200 watches')


def test_the_kubeconfig_stays_valid_over_restarts_and_kill_9(cluster):
    cluster.create({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'kept'}})
    pid = cluster.controller_pid()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not pathlib.Path('/proc', str(pid), 'exe').exists(), 'the end of the controller')
    cluster.muster.run('up')
    assert 'kept' in cluster.kubectl('get', 'configmaps')
    cluster.muster.run('down')
    cluster.muster.run('up')
    assert 'kept' in cluster.kubectl('get', 'configmaps')
    cluster.kubectl('delete', 'configmap', 'kept')


def test_a_refusal_says_why(cluster):
    mute = job('mute', SLEEP)
    del mute['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]['command']
    refused = cluster.try_kubectl('create', '-f', '-', text=json.dumps(mute))
    assert refused.returncode == 1 and 'add command:, or the annotation muster.dev/command' in refused.stderr
    greedy = job('greedy', SLEEP)
    limits = {'limits': {'nvidia.com/gpu': 1000}}
    greedy['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]['resources'] = limits
    refused = [refused, cluster.try_kubectl('create', '-f', '-', text=json.dumps(greedy))]
    assert 'resources.limits[nvidia.com/gpu]' in refused[1].stderr and 'the job needs 1000 GPUs' in refused[1].stderr
    assert all('--' not in each.stderr for each in refused)  # no message names options of muster, which kubectl does not have


def test_down_ends_what_a_killed_controller_was_deleting(muster):
    cluster = Cluster(muster)
    cluster.create(job('cut', SLEEP, workers=2))
    wait_for(lambda: cluster.try_kubectl('get', 'pod', 'cut-worker-1').returncode == 0, 'the pods')
    cluster.kubectl('delete', 'pytorchjob', 'cut')
    os.kill(cluster.controller_pid(), signal.SIGKILL)
    muster.run('down')


def test_down_ends_a_pod_of_no_job(muster):
    cluster = Cluster(muster)
    cluster.kubectl('run', 'alone', '--image=none', '--command', '--', 'sleep', '600')
    wait_for(lambda: cluster.phase('alone') == 'Running', 'the start of the pod')
    muster.run('down')


def test_what_may_i_do(cluster):
    assert cluster.kubectl('auth', 'can-i', 'create', 'pytorchjobs').strip() == 'yes'
    assert '*.*' in cluster.kubectl('auth', 'can-i', '--list')


def test_who_am_i(cluster):
    """The user has the name in the kubeconfig, and discovery lists the kind."""
    said = json.loads(cluster.kubectl('auth', 'whoami', '-o', 'json'))['status']['userInfo']
    assert said == {'username': 'muster', 'groups': ['system:masters', 'system:authenticated']}
    assert 'selfsubjectreviews' in cluster.kubectl('api-resources', '--api-group=authentication.k8s.io')


def test_the_node_says_what_it_is(cluster):
    info = json.loads(cluster.kubectl('get', 'nodes', '-o', 'json'))['items'][0]['status']['nodeInfo']
    assert info['architecture'] == {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(os.uname().machine, os.uname().machine)
    assert info['kernelVersion'] == os.uname().release and info['bootID'] == pathlib.Path('/proc/sys/kernel/random/boot_id').read_text().strip()
    assert set(info) == {'architecture', 'bootID', 'containerRuntimeVersion', 'kernelVersion', 'kubeProxyVersion', 'kubeletVersion',
                         'machineID', 'operatingSystem', 'osImage', 'systemUUID'}  # the fields that the Python client requires
    assert json.loads(cluster.kubectl('get', '--raw', '/version'))['platform'] == f'linux/{info["architecture"]}'


def test_the_custom_resource_is_listed(cluster):
    assert 'pytorchjobs.kubeflow.org' in cluster.kubectl('get', 'crd')
    assert cluster.get('crd', 'pytorchjobs.kubeflow.org')['spec']['names']['kind'] == 'PyTorchJob'
    assert 'tfjobs.kubeflow.org" not found' in cluster.try_kubectl('get', 'crd', 'tfjobs.kubeflow.org').stderr


def test_what_is_muster_s_own_is_said(cluster):
    cluster.create(job('inside', SLEEP))
    wait_for(lambda: cluster.phase('inside-master-0') == 'Running', 'the rank runs')
    assert 'kubectl exec POD' in cluster.try_kubectl('debug', 'inside-master-0', '--image=none').stderr
    cluster.kubectl('delete', 'pytorchjob', 'inside')


def test_a_kind_that_is_not_served_is_named(cluster):
    refused = cluster.try_kubectl('create', '-f', '-', text=json.dumps({'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': 'a'}}))
    assert 'no matches for kind "TFJob" in version "kubeflow.org/v1"' in refused.stderr and 'proto' not in refused.stderr


def test_a_pod_is_evicted(cluster):
    cluster.create(job('moved', SLEEP))
    wait_for(lambda: cluster.phase('moved-master-0') == 'Running', 'the rank runs')
    uid = cluster.get('pod', 'moved-master-0')['metadata']['uid']
    eviction = {'apiVersion': 'policy/v1', 'kind': 'Eviction', 'metadata': {'name': 'moved-master-0'}, 'deleteOptions': {'gracePeriodSeconds': 1}}
    cluster.kubectl('create', '--raw', '/api/v1/namespaces/default/pods/moved-master-0/eviction', '-f', '-', text=json.dumps(eviction))
    wait_for(lambda: cluster.pods_of('moved') and cluster.get('pod', 'moved-master-0')['metadata']['uid'] != uid, 'another pod is in its place')
    cluster.kubectl('delete', 'pytorchjob', 'moved')


def test_events_are_read_in_both_shapes(cluster):
    cluster.create(job('told', ['true']))
    cluster.kubectl('wait', '--for=condition=Succeeded', 'pytorchjob/told', f'--timeout={LIMIT_S}s')
    about = ('-o', 'json', '--field-selector', 'regarding.name=told,regarding.kind=PyTorchJob')
    new = json.loads(cluster.kubectl('get', 'events.events.k8s.io', *about))['items']
    old = json.loads(cluster.kubectl('get', 'events', '-o', 'json', '--field-selector', 'involvedObject.name=told,involvedObject.kind=PyTorchJob'))['items']
    assert {each['apiVersion'] for each in new} == {'events.k8s.io/v1'} and {each['apiVersion'] for each in old} == {'v1'}
    assert [(e['reason'], e['note'], e['deprecatedCount'], e['deprecatedFirstTimestamp'], e['regarding'], e['deprecatedSource']) for e in new] \
        == [(e['reason'], e['message'], e['count'], e['firstTimestamp'], e['involvedObject'], e['source']) for e in old]
    assert 'SuccessfulCreatePod' in {e['reason'] for e in new}
    assert cluster.kubectl('get', 'events.events.k8s.io').split()[:5] == ['LAST', 'SEEN', 'TYPE', 'REASON', 'OBJECT']
    assert 'SuccessfulCreatePod' in cluster.kubectl('events', '--for', 'pytorchjob/told')
    cluster.kubectl('delete', 'pytorchjob', 'told')


def test_an_event_of_the_new_group_is_made_watched_and_deleted(cluster):
    event = {'apiVersion': 'events.k8s.io/v1', 'kind': 'Event', 'metadata': {'name': 'made'}, 'action': 'Look', 'reason': 'Looked',
             'eventTime': '2026-01-01T00:00:00.000000Z', 'note': 'all is well', 'type': 'Normal', 'regarding': {'kind': 'Node', 'name': 'n'},
             'reportingController': 'example.com/c', 'reportingInstance': 'c-1'}
    watch = subprocess.Popen(['kubectl', 'get', 'events.events.k8s.io', '-w', '--output-watch-events', '-o', 'jsonpath={.type} {.object.note}{"\\n"}',
                              '--field-selector', 'reportingController=example.com/c'], env=cluster.env, stdout=subprocess.PIPE, text=True)
    try:
        assert 'event.events.k8s.io/made created' in cluster.create(event)
        assert watch.stdout.readline() == 'ADDED all is well\n'
        cluster.kubectl('patch', 'event.events.k8s.io', 'made', '-p', '{"note":"still well"}')
        assert watch.stdout.readline() == 'MODIFIED still well\n'
        assert cluster.get('event', 'made')['message'] == 'still well'
        cluster.kubectl('delete', 'event.events.k8s.io', 'made')
        assert watch.stdout.readline() == 'DELETED still well\n'
    finally:
        watch.kill()
        watch.wait()
    refused = cluster.try_kubectl('create', '-f', '-', text=json.dumps(dict(event, deprecatedCount=1)))
    assert 'deprecatedCount: ' in refused.stderr and 'needs to be unset' in refused.stderr


def test_fields_are_explained(cluster):
    explained = cluster.kubectl('explain', 'pytorchjobs.spec.runPolicy')
    assert 'activeDeadlineSeconds' in explained and 'backoffLimit' in explained
    assert 'cleanPodPolicy' in cluster.kubectl('explain', 'pytorchjob', '--recursive')

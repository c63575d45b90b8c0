"""PyTorchJobs on a real API server, and `muster operator` as a process, for the operator's tests. No kubelet runs: the tests write the
statuses of pods."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

from cluster import die_with_parent
from program import BUILD, LIMIT_S, wait_for

JOBS = '/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs'
CORE = '/api/v1/namespaces/{}/{}'
MERGE = 'application/merge-patch+json'
LABEL = 'training.kubeflow.org/'


def deployed(*words):
    """Returns the objects that `muster deploy --print` would install."""
    done = subprocess.run([BUILD / 'bin/muster', 'deploy', '--print', '-o', 'json', *words], stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True)
    return json.loads(done.stdout)['items']


def install(cluster, change=None):
    """Installs the definition of PyTorchJobs from deploy/; `change` may change it first."""
    definition = next(made for made in deployed('--overlay', 'cluster') if made['kind'] == 'CustomResourceDefinition')
    if change:
        change(definition)
    cluster.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
    wait_served(cluster)


def wait_served(cluster):
    """Waits until the API server serves PyTorchJobs."""
    def is_served():
        try:
            return cluster.request('GET', '/apis/kubeflow.org/v1/pytorchjobs')['items'] == []
        except urllib.error.HTTPError as refused:
            assert refused.code in (404, 429, 503), refused  # not known yet, or its storage is still being made
            return False
    wait_for(is_served, 'PyTorchJobs are served')


def job(name, master=1, workers=1, policy=None, run=None, template=None):
    """Returns a job; a count of 0 leaves that replica type out. `run`: its runPolicy."""
    container = {'name': 'pytorch', 'image': 'none', 'command': ['python', 'train.py']}
    replica = {'template': {'spec': {'containers': [container]}, **(template or {})}}
    if policy:
        replica['restartPolicy'] = policy
    replicas = {kind: {**replica, 'replicas': count} for kind, count in (('Master', master), ('Worker', workers)) if count}
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': name},
            'spec': {'pytorchReplicaSpecs': replicas, **({'runPolicy': run} if run else {})}}


class Jobs:
    """The jobs of one namespace, and the objects that belong to them."""

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace

    def at(self, kind, name=''):
        base = JOBS.format(self.namespace) if kind == 'jobs' else CORE.format(self.namespace, kind)
        return f'{base}/{name}' if name else base

    def create(self, *words, **more):
        return self.cluster.request('POST', self.at('jobs'), job(*words, **more))

    def get(self, name, kind='jobs'):
        try:
            return self.cluster.request('GET', self.at(kind, name))
        except urllib.error.HTTPError as refused:
            assert refused.code == 404, refused
            return None

    def list(self, kind, name=None):
        """Returns the objects of a kind by name; with `name`, only those of that job."""
        selector = f'?labelSelector={LABEL}job-name={name}' if name else ''
        return {item['metadata']['name']: item for item in self.cluster.request('GET', self.at(kind) + selector)['items']}

    def patch(self, name, body, kind='jobs', part=''):
        return self.cluster.request('PATCH', self.at(kind, name) + part, body, MERGE)

    def delete(self, name, kind='jobs'):
        self.cluster.request('DELETE', self.at(kind, name), {'gracePeriodSeconds': 0} if kind == 'pods' else {})

    def conditions(self, name):
        """Returns {type: condition} of the conditions that hold, in their order."""
        found = (self.get(name) or {}).get('status', {}).get('conditions', [])
        return {c['type']: c for c in found if c['status'] == 'True'}

    def wait_pods(self, name, count):
        def are_there():
            pods, services = self.list('pods', name), self.list('services', name)
            return pods if len(pods) == count and len(services) >= count else None
        return wait_for(are_there, f'{count} pods of {name}, and their Services')

    def wait_condition(self, name, condition):
        return wait_for(lambda: self.conditions(name).get(condition), f'{name}: {condition}')

    def set_phase(self, name, phase, exit_code=None, **beside):
        """Writes the pod's status as a kubelet would. `beside`: exit codes of other containers in the pod; None: the container runs."""
        def status(container, code):
            state = {'running': {'startedAt': '2026-01-01T00:00:00Z'}} if code is None else {
                'terminated': {'exitCode': code, 'reason': 'Completed' if code == 0 else 'Error', 'finishedAt': '2026-01-01T00:01:00Z'}}
            return {'name': container, 'image': 'none', 'imageID': '', 'ready': phase == 'Running', 'restartCount': 0, 'state': state}
        containers = [status(*each) for each in {**beside, 'pytorch': exit_code}.items()]
        self.patch(name, {'status': {'phase': phase, 'startTime': '2026-01-01T00:00:00Z', 'containerStatuses': containers}}, 'pods', '/status')

    def set_phases(self, name, phase, exit_code=None, **beside):
        for pod in self.list('pods', name):
            self.set_phase(pod, phase, exit_code, **beside)

    def events(self, name):
        return [e for e in self.cluster.request('GET', self.at('events'))['items'] if e['involvedObject']['name'] == name]

    def reasons(self, name):
        return [e['reason'] for e in self.events(name)]


class Operator:
    """`muster operator`, until it is stopped or killed; if it is started again, it continues the same log."""

    def __init__(self, kubeconfig, *options, program=('muster', 'operator'), env=None):
        self.kept = tempfile.TemporaryDirectory(prefix='muster-operator-')  # is removed together with this object
        self.folder = pathlib.Path(self.kept.name)
        self.words = [BUILD / 'bin' / program[0], *program[1:], '--kubeconfig', str(kubeconfig), '--kube-api-qps=500', '--kube-api-burst=500',
                      '--metrics-bind-address=127.0.0.1:0', '--health-probe-bind-address=127.0.0.1:0', *options]
        self.env = {**os.environ, 'HOME': str(self.folder), **(env or {})}
        self.process = None

    def start(self):
        with open(self.folder / 'log', 'ab') as log:
            self.begin = log.tell()
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env, cwd=self.folder,
                                            preexec_fn=die_with_parent)
        return self

    def lines(self):
        """Returns what it has logged since its last start; each line is an object. A last line that is not complete is left out."""
        text = (self.folder / 'log').read_bytes()[self.begin:].decode()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith('\n')]

    def said(self, event, words=''):
        return next((line for line in self.lines() if line['event'] == event and words in line['message']), None)

    def port(self, flag):
        return int(wait_for(lambda: self.said('operator.listen', flag), f'it listens for {flag}')['message'].rpartition(':')[2])

    def ask(self, flag, path):
        """Returns (status, text)."""
        try:
            with urllib.request.urlopen(f'http://127.0.0.1:{self.port(flag)}{path}', timeout=LIMIT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def health(self, path):
        return self.ask('health-probe-bind-address', path)[0]

    def metrics(self):
        """Returns {name with labels: value}."""
        status, text = self.ask('metrics-bind-address', '/metrics')
        assert status == 200, text
        return {name: float(value) for name, value in (line.rsplit(' ', 1) for line in text.splitlines() if line[0] != '#')}

    def wait_ready(self):
        wait_for(lambda: self.health('/readyz') == 200, 'the operator is ready')
        return self

    def end(self, signal_number=signal.SIGTERM):
        """Sends it a signal, and returns its exit status."""
        self.process.send_signal(signal_number)
        return self.process.wait(LIMIT_S)

    def close(self):
        if self.process and self.process.poll() is None:
            self.end(signal.SIGKILL)

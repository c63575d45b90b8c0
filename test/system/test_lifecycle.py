"""The lifecycle matrix (test/data/lifecycle.json) on real processes: the same cases that
test/simulation/lifecycle_test.c runs on the pure cores, here through the controller, its API and its supervisors.

Each case has its own namespace; all share one controller. A shell script per attempt defines what a rank does. Cases marked `virtual` (minutes
of back-off, devices) run only in the simulation."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import time

import pytest
from program import LIMIT_S, turns

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('MUSTER_BUILD', ROOT / 'build'))
CASES = [c for c in json.loads((ROOT / 'test/data/lifecycle.json').read_text()) if not c.get('virtual')]
AT_ONCE = 6  # cases that run side by side
START_S = 10  # how long an action waits until all ranks run; some never can


class Api:
    """The controller's API on its Unix socket."""

    def __init__(self, home):
        self.path = str(home / 'api.sock')

    def call(self, method, path, body=None, content='application/json'):
        connection = http.client.HTTPConnection('localhost', timeout=LIMIT_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.path)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {'Content-Type': content})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b'null')
        finally:
            connection.close()


def act_script(act):
    """Returns the shell command that does what one entry of `ranks` says."""
    if act.get('run') is None:
        if act.get('ignoresTerm'):
            return "trap '' TERM; while :; do sleep 1; done"
        return 'exec sleep 1000'
    code = act.get('exit', 0)
    end = {137: 'kill -KILL $$', 143: 'kill -TERM $$'}.get(code, f'exit {code}')
    return f'sleep {act["run"]}; {end}'


def write_scripts(case, folder):
    """Writes one file per replica and attempt, and the script `run`, which counts the attempts over restarts and new pods."""
    for replica, acts in case['ranks'].items():
        for number, act in enumerate(acts):
            (folder / f'{replica}.{number}').write_text(act_script(act) + '\n')
        (folder / f'{replica}.last').write_text(str(len(acts) - 1))
    run = folder / 'run'
    run.write_text(f'''cd {shlex.quote(str(folder))} || exit 99
replica=${{POD#case-}}
n=$(cat $replica.count 2>/dev/null || echo 0)
last=$(cat $replica.last)
echo $((n + 1)) >$replica.count
[ $n -le $last ] || n=$last
. ./$replica.$n
''')
    return run


def make_job(case, namespace, script):
    wanted = case['job']
    container = {'name': 'pytorch', 'image': 'case', 'command': ['sh', str(script)],
                 'env': [{'name': 'POD', 'valueFrom': {'fieldRef': {'fieldPath': 'metadata.name'}}}]}
    specs = {}
    for role, replicas in (('Master', int(wanted.get('master', False))), ('Worker', wanted.get('workers', 0))):
        policy = wanted['restartPolicy']
        if replicas:
            specs[role] = {'replicas': replicas, 'restartPolicy': policy if isinstance(policy, str) else policy[role],
                           'template': {'spec': {'containers': [container],
                                                 'terminationGracePeriodSeconds': wanted.get('gracePeriod', 2)}}}
    spec = {'pytorchReplicaSpecs': specs, 'runPolicy': wanted.get('runPolicy', {})}
    if 'elasticPolicy' in wanted:
        spec['elasticPolicy'] = wanted['elasticPolicy']
    metadata = {'name': 'case', 'namespace': namespace}
    notes = {'muster.dev/success-policy': wanted.get('successPolicy'), 'muster.dev/max-restarts': wanted.get('maxRestarts')}
    metadata['annotations'] = {key: value for key, value in notes.items() if value}
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': metadata, 'spec': spec}


class Run:
    """One case from creation to its end."""

    def __init__(self, api, case, namespace, folder):
        self.api, self.case, self.namespace = api, case, namespace
        self.jobs = f'/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs'
        self.core = f'/api/v1/namespaces/{namespace}'
        status, answer = api.call('POST', self.jobs, make_job(case, namespace, write_scripts(case, folder)))
        assert status == 201, answer
        self.start = time.monotonic()
        self.told = {}  # every event that was seen, by its uid: the job's events are deleted with it

    def elapsed(self):
        return time.monotonic() - self.start

    def wait(self, condition, limit_s=LIMIT_S):
        """Waits until the condition is true, and returns its last value."""
        for _ in turns(limit_s):
            value = condition()
            if value:
                break
        return value

    def job(self):
        status, job = self.api.call('GET', f'{self.jobs}/case')
        return job if status == 200 else None

    def conditions(self):
        return (self.job() or {}).get('status', {}).get('conditions', [])

    def pods(self):
        _, answer = self.api.call('GET', f'{self.core}/pods')
        return {p['metadata']['name'][len('case-'):]: p.get('status', {}).get('phase', '') for p in answer['items']}

    def events(self):
        _, answer = self.api.call('GET', f'{self.core}/events')
        self.told.update({e['metadata']['uid']: e for e in answer['items'] if e['involvedObject']['kind'] == 'PyTorchJob'})
        return self.told.values()

    def is_over(self):
        until = self.case.get('until', 'end')
        if until == '':
            return True
        if until == 'gone':
            self.events()
            return self.job() is None and not self.pods()
        wanted = ('Succeeded', 'Failed') if until == 'end' else (until,)
        return any(c['type'] in wanted and c['status'] == 'True' for c in self.conditions())

    def do(self, action):
        self.wait(lambda: self.elapsed() >= action['at'])
        self.wait(lambda: 'Pending' not in self.pods().values(), START_S)
        if 'patch' in action:
            status, answer = self.api.call('PATCH', f'{self.jobs}/case', action['patch'], 'application/merge-patch+json')
            assert status == 200, answer
        if 'deletePod' in action:
            status, answer = self.api.call('DELETE', f'{self.core}/pods/case-{action["deletePod"]}')
            assert status in (200, 202), answer

    def seen(self):
        """Returns everything that `expect` may mention, as it is in this run."""
        job = self.job() or {}
        counts, made = {}, {}
        for event in self.events():
            count = event.get('count', 1)
            counts[event['reason']] = counts.get(event['reason'], 0) + count
            pod = re.fullmatch('Created pod: case-(.*)', event['message'])
            if pod:
                made[pod[1]] = made.get(pod[1], 0) + count
        replicas = {role: {k: v for k, v in entry.items() if k != 'selector'}
                    for role, entry in job.get('status', {}).get('replicaStatuses', {}).items()}
        return {'conditions': [c['type'] + ('' if c['status'] == 'True' else '=' + c['status']) for c in self.conditions()],
                'events': counts, 'made': made, 'pods': self.pods(), 'replicas': replicas,
                'failures': job.get('status', {}).get('counters', {}).get('failures', 0)}

    def differences(self):
        expected, seen = self.case['expect'], self.seen()
        return {what: {'got': seen[what], 'expected': expected[what]}
                for what in seen if what in expected and seen[what] != expected[what]}

    def check(self):
        for action in self.case.get('do', []):
            self.do(action)
        assert self.wait(self.is_over), f'never became {self.case.get("until", "end")}: {self.conditions()}'
        took = self.elapsed()
        self.wait(lambda: not self.differences())
        assert not self.differences()
        expected = self.case['expect']
        last = (self.conditions() or [{'reason': '', 'message': ''}])[-1]
        for what in ('reason', 'message'):
            pattern = expected.get(what, '').replace('default/', self.namespace + '/')
            assert re.search(pattern, last[what]), last
        # How late the end may be is tested with simulated time (test/simulation), because a busy machine may be late; it is never early.
        assert expected.get('seconds', [0])[0] - 0.05 <= took


@pytest.fixture(scope='module')
def api(tmp_path_factory):
    home = tmp_path_factory.mktemp('home')
    environment = dict(os.environ, MUSTER_HOME=str(home))
    muster = BUILD / 'bin/muster'
    subprocess.run([muster, 'up'], env=environment, check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)
    yield Api(home)
    subprocess.run([muster, 'down'], env=environment, check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)


def outcome(api, number, case, folder):
    """Runs a case; returns None, or the error."""
    folder.mkdir()
    try:
        Run(api, case, f'case-{number}', folder).check()
    except Exception as error:  # noqa: BLE001  the test reports every failure
        return error
    return None


@pytest.fixture(scope='module')
def outcomes(api, tmp_path_factory):
    """The outcomes of all cases, which run several at a time, because they mostly wait."""
    base = tmp_path_factory.mktemp('cases')
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {case['name']: pool.submit(outcome, api, number, case, base / str(number))
                   for number, case in enumerate(CASES)}
        return {name: future.result() for name, future in futures.items()}


@pytest.mark.parametrize('name', [case['name'] for case in CASES])
def test_case(outcomes, name):
    if outcomes[name] is not None:
        raise outcomes[name]

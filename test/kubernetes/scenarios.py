"""Scenarios of a job's life on a cluster, and the observations of each, for any operator. The scenarios are those of test/data/lifecycle.json, and
more in the same form (test/data/operator.json); each runs in its own namespace.
"""
import concurrent.futures
import json
import time
import urllib.error

from jobs import LABEL
from kubelet import Kubelet
from program import SOURCE, turns
from watched import Watched

JOBS = '/apis/kubeflow.org/v1/pytorchjobs'
MERGE = 'application/merge-patch+json'
ANNOTATIONS = {'successPolicy': 'muster.dev/success-policy', 'maxRestarts': 'muster.dev/max-restarts'}
AT_ONCE = 16
# The matrix is written for a machine that does nothing else: here all its times are multiplied by this.
PACE = 2
TIMES = ('run', 'evicted', 'at', 'then', 'activeDeadlineSeconds', 'ttlSecondsAfterFinished')
GRACE_S = 8  # how much later than expected something may happen
STILL_S, SETTLE_S = 4, 25


def scenarios():
    """Returns a list of all scenarios."""
    cases = [case for file in ('lifecycle', 'operator') for case in json.loads((SOURCE / f'test/data/{file}.json').read_text())]
    assert len({case['name'] for case in cases}) == len(cases)
    return slower(cases)


def slower(thing):
    """Returns a scenario with all times multiplied by PACE."""
    if isinstance(thing, list):
        return [slower(part) for part in thing]
    if not isinstance(thing, dict):
        return thing
    return {key: value * PACE if key in TIMES and value else slower(value) for key, value in thing.items()}


def make_job(case):
    wanted = case['job']
    container = {'name': wanted.get('container', 'pytorch'), 'image': 'none', 'command': ['train']}
    if wanted.get('gpu'):
        container['resources'] = {'limits': {'nvidia.com/gpu': '1'}}
    template = {'spec': {'containers': [container], 'terminationGracePeriodSeconds': wanted.get('gracePeriod', 2)}}
    template['spec'].update(wanted.get('podSpec', {}))
    roles = {}
    for role, replicas in (('Master', int(wanted.get('master', False))), ('Worker', wanted.get('workers', 0))):
        policy = wanted['restartPolicy']
        if replicas:
            roles[role] = {'replicas': replicas, 'restartPolicy': policy if isinstance(policy, str) else policy[role], 'template': template}
    spec = {'pytorchReplicaSpecs': roles, **{key: wanted[key] for key in ('runPolicy', 'elasticPolicy', 'nprocPerNode') if key in wanted}}
    notes = {name: wanted[key] for key, name in ANNOTATIONS.items() if key in wanted}
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': wanted.get('name', 'case'), 'annotations': notes}, 'spec': spec}


def stranger(kind, name):
    """Returns a pod or a Service that has the labels of the job's worker 0, and no owner."""
    labels = {f'{LABEL}operator-name': 'pytorchjob-controller', f'{LABEL}job-name': 'case', f'{LABEL}replica-type': 'worker', f'{LABEL}replica-index': '0'}
    spec = {'containers': [{'name': 'pytorch', 'image': 'none'}]} if kind == 'pods' else {'clusterIP': 'None', 'ports': [{'port': 80}]}
    return {'metadata': {'name': name, 'labels': labels}, 'spec': spec}


class Stage:
    """A cluster on which scenarios are played, with the kubelet's part and the watches."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.kubelet = Kubelet(cluster)
        self.pods = Watched(cluster, '/api/v1/pods', self.kubelet.on_pod)
        self.services, self.events, self.jobs = (Watched(cluster, path) for path in ('/api/v1/services', '/api/v1/events', JOBS))

    def close(self):
        for watched in (self.pods, self.services, self.events, self.jobs):
            watched.close()
        self.kubelet.close()

    def play(self, cases, label):
        """Plays each scenario in a namespace LABEL-number, and returns {name: what was observed}."""
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            played = [pool.submit(lambda case=case, number=number: Play(self, case, f'{label}-{number}').seen()) for number, case in enumerate(cases)]
            return {case['name']: done.result() for case, done in zip(cases, played)}


class Play:
    """One scenario, from the creation of its job until nothing changes any more."""

    def __init__(self, stage, case, namespace):
        self.stage, self.case, self.cluster = stage, case, stage.cluster
        self.namespace = self.cluster.namespace(namespace)
        self.name = case['job'].get('name', 'case')
        stage.kubelet.ranks[namespace] = case['ranks']
        for kind, name in case.get('strangers', []):
            self.cluster.request('POST', f'/api/v1/namespaces/{namespace}/{kind}', stranger(kind, name))
        self.cluster.request('POST', self.at(), make_job(case))
        self.begin = time.monotonic()

    def at(self, name=''):
        return f'/apis/kubeflow.org/v1/namespaces/{self.namespace}/pytorchjobs' + (f'/{name}' if name else '')

    def until(self, condition, limit_s):
        return any(condition() for _ in turns(limit_s))

    def job(self):
        return self.stage.jobs.of(self.namespace).get(self.name)

    def conditions(self):
        return ((self.job() or {}).get('status') or {}).get('conditions', [])

    def is_over(self):
        until = self.case.get('until', 'end')
        if until == 'gone':
            return self.job() is None
        wanted = ('Succeeded', 'Failed') if until == 'end' else (until,)
        return not until or any(c['type'] in wanted and c['status'] == 'True' for c in self.conditions())

    def all_run(self):
        """Whether all pods run or have run. A job that makes no pods is not waited for."""
        phases = [pod['status'].get('phase') for pod in self.stage.pods.of(self.namespace).values()]
        return 'Pending' not in phases and (phases or not self.case['ranks'])

    def act(self, action):
        """Does an action at its time, but not before the ranks run, if they can run."""
        self.until(lambda: time.monotonic() >= self.begin + action['at'], action['at'] + 1)
        self.until(self.all_run, GRACE_S)
        core = f'/api/v1/namespaces/{self.namespace}'
        try:
            if 'patch' in action:
                self.cluster.request('PATCH', self.at(self.name), action['patch'], MERGE)
            for key, kind in (('deletePod', 'pods'), ('deleteService', 'services')):
                if key in action:
                    self.cluster.request('DELETE', f'{core}/{kind}/{self.name}-{action[key]}', {})
            if action.get('deleteJob'):
                self.cluster.request('DELETE', self.at(self.name), {})
        except urllib.error.HTTPError as refused:
            assert refused.code == 404, refused.read()

    def seen(self):
        """Returns everything that is compared, as {field: value}."""
        self.until(self.job, GRACE_S)
        for action in self.case.get('do', []):
            self.act(action)
        runs = [act.get('run') or 0 for acts in self.case['ranks'].values() for act in acts]
        self.until(self.is_over, PACE * self.case.get('expect', {}).get('seconds', [0, sum(runs)])[1] + GRACE_S)
        self.until(lambda: False, min(self.case.get('then', 0), GRACE_S))
        return self.settled()

    def settled(self):
        """Waits until nothing has changed for a while, and a deleted job has no pods left; returns the fields."""
        last, since = None, time.monotonic()
        for _ in turns(SETTLE_S):
            self.stage.kubelet.catch_up()
            fields = self.fields()
            if fields != last:
                last, since = fields, time.monotonic()
            if time.monotonic() > since + STILL_S and not (self.job() is None and self.stage.pods.of(self.namespace)):
                break
        return last

    def fields(self):
        job, found = self.job(), {}
        found['job'] = 'there' if job else 'gone'
        status = (job or {}).get('status') or {}
        found['conditions'] = ' '.join(c['type'] + ('' if c['status'] == 'True' else '=False') for c in status.get('conditions', []))
        for condition in status.get('conditions', []):
            found[f'reason of {condition["type"]}'] = condition['reason']
            found[f'message of {condition["type"]}'] = condition['message'].replace(self.namespace + '/', 'NAMESPACE/')
        for key in ('startTime', 'completionTime'):
            found[key] = 'set' if status.get(key) else ''
        for role, counts in (status.get('replicaStatuses') or {}).items():
            found.update({f'{key} of {role}': value for key, value in counts.items()})
        return {**found, **self.parts()}

    def parts(self):
        """Returns the fields of pods, Services and events."""
        found = {}
        for kind, watched in (('pod', self.stage.pods), ('Service', self.stage.services)):
            found.update({f'{kind} {name}': thing.get('status', {}).get('phase', 'there') for name, thing in watched.of(self.namespace).items()})
            found.update({f'{kind} {name} made': count for name, count in watched.counts(watched.made, self.namespace).items()})
            found.update({f'{kind} {name} deleted': count for name, count in watched.counts(watched.deleted, self.namespace).items()})
        for event in self.stage.events.of(self.namespace).values():
            if event['involvedObject']['kind'] == 'PyTorchJob':
                found[f'event {event["type"]} {event["reason"]}'] = 'there'
        return found

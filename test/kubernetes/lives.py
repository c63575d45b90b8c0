"""The life of a job, step by step, on the embedded cluster and on an API server: the test tells each rank what to do, and keeps the status
that muster's controller has sent at the end of each step as bytes (bodies.py). On the laptop ranks are processes that wait for a word; on the
cluster the test plays the kubelet.
"""
import json
import re

from bodies import JOBS, as_bytes, post, request
from jobs import MERGE, Jobs, Operator
from program import Muster, wait_for
from proxy import Proxy

# A rank that ends when its word comes: an exit code, or 128 and a signal by which it dies. Its next attempt waits for the next one.
WAITS = 'until mv "$0/$POD" "$0/$POD.taken" 2>/dev/null; do sleep 0.05; done; n=$(cat "$0/$POD.taken"); [ $n -le 128 ] || kill -$((n - 128)) $$; exit $n'
# Of the counters: the version of the pod that they are about, and when it was made again (what a test says of a pod's times is not of this day).
VARIES = re.compile(r'(?<="version":")\d+|(?<="at":)\d+')
POD = {'name': 'POD', 'valueFrom': {'fieldRef': {'fieldPath': 'metadata.name'}}}


def told_by(folder, job):
    """The job with ranks that do what the files of the folder say."""
    for role in job['spec']['pytorchReplicaSpecs'].values():
        container = role['template']['spec']['containers'][0]
        container.pop('args', None)
        container.update(command=['sh', '-c', WAITS, str(folder)], env=[POD])
    return job


def in_order(status):
    """Its keys, as an API server gives them back: what a controller sends of what was there before has them so."""
    return json.loads(json.dumps(status, sort_keys=True))


class Life:
    """One job of a target. `steps`: its status as bytes, at the end of each step; `at`: how many writes of it had been looked at then."""

    def __init__(self, target, job):
        self.target, self.name, self.steps, self.at = target, job['metadata']['name'], [], 0
        self.roles = {role: spec.get('replicas', 1) for role, spec in job['spec']['pytorchReplicaSpecs'].items()}
        target.create(job)

    def reaches(self, condition, **counts):
        """Until a status is sent that says so: a condition that holds, and how many ranks of each kind are what ({'Worker': {'active': 1}})."""
        def says_so(status):
            found = status.get('replicaStatuses', {})
            return any(c['type'] == condition and c['status'] == 'True' for c in status['conditions']) and \
                all(found.get(role, {}).get(key, 0) == count for role, wanted in counts.items() for key, count in wanted.items())

        def is_there():
            self.target.serve(self.name)
            sent = self.target.statuses(self.name)
            while self.at < len(sent):
                self.at += 1
                if says_so(sent[self.at - 1]):
                    return sent[self.at - 1]
            return None
        status = wait_for(is_there, f'{self.name}: {condition} {counts}')
        self.steps.append((condition, VARIES.sub('VARIES', as_bytes('pytorchjobs', {'status': in_order(status)}))))

    def runs(self):
        """All its ranks."""
        self.reaches('Running', **{role: {'active': count} for role, count in self.roles.items()})

    def exits(self, rank, code):
        self.target.exits(f'{self.name}-{rank}', code)

    def suspend(self, value):
        self.target.patch(self.name, {'spec': {'runPolicy': {'suspend': value}}})


class Laptop:
    def __init__(self, namespace, folder):
        self.namespace, self.folder, self.muster = namespace, folder, Muster()
        self.audit = self.muster.folder / 'audit'
        self.muster.env['MUSTER_AUDIT'] = str(self.audit)
        self.muster.run('up')
        self.socket = self.muster.home / 'api.sock'

    def create(self, job):
        post(self.socket, JOBS.format(self.namespace), job)

    def patch(self, name, body):
        request(self.socket, 'PATCH', f'{JOBS.format(self.namespace)}/{name}', body, MERGE)

    def statuses(self, name):
        lines = [json.loads(line) for line in self.audit.read_text().splitlines(keepends=True) if line.endswith('\n')]
        return [said['body']['status'] for said in lines if said['resource'] == 'pytorchjobs' and said['name'] == name and 'status' in (said['body'] or {})]

    def serve(self, name):
        """Its ranks run by themselves."""

    def exits(self, pod, code):
        (self.folder / f'{pod}.new').write_text(str(code))
        (self.folder / f'{pod}.new').rename(self.folder / pod)

    def close(self):
        self.muster.close()


class OnCluster:
    def __init__(self, cluster, namespace):
        self.proxy, self.jobs = Proxy(cluster), Jobs(cluster, namespace)
        config = cluster.write_kubeconfig(f'lives-{namespace}', self.proxy.url, user={}, namespace=namespace)
        self.operator = Operator(config, '--namespace', namespace).start().wait_ready()

    def create(self, job):
        self.jobs.cluster.request('POST', self.jobs.at('jobs'), job)

    def patch(self, name, body):
        self.jobs.patch(name, body)

    def statuses(self, name):
        return [body['status'] for method, path, body in list(self.proxy.bodies) if method == 'PUT' and path.partition('?')[0].endswith(f'/{name}/status')]

    def serve(self, name):
        """As a kubelet does it: what is new runs."""
        for pod, found in self.jobs.list('pods', name).items():
            if found['status'].get('phase') == 'Pending':
                self.jobs.set_phase(pod, 'Running')

    def exits(self, pod, code):
        self.jobs.set_phase(pod, 'Failed' if code else 'Succeeded', code)

    def close(self):
        self.operator.close()
        self.proxy.close()

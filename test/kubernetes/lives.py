"""The life of a job, step by step, on the embedded cluster and on an API server: the test orders what each rank does, and keeps the status that
muster's controller has sent at the end of each step as bytes (bodies.py). On the laptop ranks are processes that wait for a file; on the cluster the
test plays the kubelet.
"""
import json
import re

from bodies import JOBS, as_bytes, post, request
from jobs import MERGE, Jobs, Operator
from program import Muster, wait_for
from proxy import Proxy

# The script of a rank that ends when its file appears, which has an exit code, or 128 plus the signal that kills the rank. Its next attempt waits for
# the next file.
WAITS = 'until mv "$0/$POD" "$0/$POD.taken" 2>/dev/null; do sleep 0.05; done; n=$(cat "$0/$POD.taken"); [ $n -le 128 ] || kill -$((n - 128)) $$; exit $n'
# In the counters: the version of a pod, and when it was made again (the times in statuses that the test writes are not today's).
VARIES = re.compile(r'(?<="version":")\d+|(?<="at":)\d+')
POD = {'name': 'POD', 'valueFrom': {'fieldRef': {'fieldPath': 'metadata.name'}}}


def told_by(folder, job):
    """Changes the job so that its ranks do what the files of the folder say, and returns it."""
    for role in job['spec']['pytorchReplicaSpecs'].values():
        container = role['template']['spec']['containers'][0]
        container.pop('args', None)
        container.update(command=['sh', '-c', WAITS, str(folder)], env=[POD])
    return job


def in_order(status):
    """Returns the status with its keys sorted: an API server returns them sorted, and a controller sends older parts back in that order."""
    return json.loads(json.dumps(status, sort_keys=True))


class Life:
    """One job on a target. `steps`: its status as bytes, at the end of each step; `at`: the number of writes of the status that were examined so
    far."""

    def __init__(self, target, job):
        self.target, self.name, self.steps, self.at = target, job['metadata']['name'], [], 0
        self.roles = {role: spec.get('replicas', 1) for role, spec in job['spec']['pytorchReplicaSpecs'].items()}
        target.create(job)

    def reaches(self, condition, **counts):
        """Waits until a status is sent in which the condition holds and each replica type has these counts ({'Worker': {'active': 1}})."""
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
        """Waits until all its ranks run."""
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
        """Does nothing: the ranks run by themselves."""

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
        """Sets pending pods to Running, as a kubelet would."""
        for pod, found in self.jobs.list('pods', name).items():
            if found['status'].get('phase') == 'Pending':
                self.jobs.set_phase(pod, 'Running')

    def exits(self, pod, code):
        self.jobs.set_phase(pod, 'Failed' if code else 'Succeeded', code)

    def close(self):
        self.operator.close()
        self.proxy.close()

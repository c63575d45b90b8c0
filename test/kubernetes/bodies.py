"""The requests that muster's controller sends for a job, as bytes: on the embedded cluster by its own audit (MUSTER_AUDIT), on an API server
by a proxy in front of it. Times, uids and versions are not compared; all else is, in its order.
"""
import http.client
import json
import re
import socket

from jobs import JOBS, Jobs, Operator
from program import LIMIT_S, Muster, wait_for
from proxy import Proxy

KINDS = {'pods': 'pods', 'services': 'services', 'persistentvolumeclaims': 'claims', 'events': 'events', 'pytorchjobs': 'jobs'}
# A time, a uid, the end of an event's name (which is made from the event's uid), a version.
VARIES = re.compile(r'\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|(?<=\.)[0-9a-f]{16}(?=")|(?<="resourceVersion":")\d+')


def as_bytes(kind, body):
    """Returns a body as text without what varies. For a job this is only the status, because an API server ignores the rest of such a write."""
    return VARIES.sub('VARIES', json.dumps(body['status'] if kind == 'pytorchjobs' else body, separators=(',', ':')))


def label(kind, body):
    """Returns a name that says what a body is about; bodies with the same name are compared."""
    if kind == 'events':
        return f'event {body["reason"]} {body["message"]}'
    if kind == 'pytorchjobs':
        return 'status ' + ' '.join(c['type'] + '=' + c['status'] for c in body.get('status', {}).get('conditions', []))
    return f'{kind} {body["metadata"]["name"]}'


def add(found, kind, body):
    found.setdefault(label(kind, body), as_bytes(kind, body))


def post(socket_path, path, body):
    """Sends an object to the embedded cluster, as an SDK does: no client checks the job first."""
    request(socket_path, 'POST', path, body, 'application/json')


def request(socket_path, method, path, body, content_type):
    connection = http.client.HTTPConnection('localhost', timeout=LIMIT_S)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(socket_path))
    connection.request(method, path, json.dumps(body), {'Content-Type': content_type})
    answer = connection.getresponse()
    assert answer.status in (200, 201), answer.read()
    connection.close()


def on_laptop(jobs, wait):
    """Returns {job: {label: bytes}} of what muster's daemon sends. `wait(sent, job)` waits until everything for a job has been sent."""
    muster = Muster()
    audit = muster.folder / 'audit'
    muster.env['MUSTER_AUDIT'] = str(audit)
    try:
        muster.run('up')
        for job in jobs:
            post(muster.home / 'api.sock', JOBS.format(job['metadata']['namespace']), job)
            wait(lambda name=job['metadata']['name']: read_audit(audit).get(name, {}), job)
        return read_audit(audit)
    finally:
        muster.close()


def read_audit(path):
    found = {}
    for line in path.read_text().splitlines():
        said = json.loads(line)
        if said['body'] and is_whole(said['resource'], said['body']) and said['verb'] in ('create', 'replace', 'patch'):
            add(found.setdefault(job_of(said['resource'], said['name'], said['body']), {}), said['resource'], said['body'])
    return found


def is_whole(kind, body):
    """Whether a body is of a known kind, and is not the patch of an event that is counted again."""
    return kind in KINDS and (kind != 'events' or 'involvedObject' in body)


def job_of(kind, name, body):
    if kind == 'events':
        return body['involvedObject']['name']
    return name if kind == 'pytorchjobs' else body['metadata']['labels']['training.kubeflow.org/job-name']


def on_cluster(cluster, namespace, jobs, wait):
    """Returns the same as `on_laptop`, but for muster operator."""
    proxy, made = Proxy(cluster), Jobs(cluster, namespace)
    config = cluster.write_kubeconfig(f'bodies-{namespace}', proxy.url, user={}, namespace=namespace)
    operator = Operator(config, '--namespace', namespace).start()
    try:
        operator.wait_ready()
        for job in jobs:
            cluster.request('POST', made.at('jobs'), job)
            wait(lambda name=job['metadata']['name']: read_proxy(proxy).get(name, {}), job)
        return read_proxy(proxy)
    finally:
        operator.close()
        proxy.close()


def read_proxy(proxy):
    found = {}
    for method, path, body in list(proxy.bodies):
        words = path.partition('?')[0].split('/')
        kind = next((word for word in words if word in KINDS), None)
        if kind and method in ('POST', 'PUT', 'PATCH') and is_whole(kind, body):
            after = words[words.index(kind) + 1:]
            add(found.setdefault(job_of(kind, after[0] if after else '', body), {}), kind, body)
    return found


def replicas(job):
    return sum(role.get('replicas', 1) for role in job['spec']['pytorchReplicaSpecs'].values())


def claims(job):
    return sum(role.get('replicas', 1) * len(role.get('volumeClaimTemplates', [])) for role in job['spec']['pytorchReplicaSpecs'].values())


def wait_made(sent, job):
    """Waits until the job's pods, Services, claims, the events of pods and Services, and the first status have been sent."""
    wanted = {'pods': replicas(job), 'services': replicas(job), 'persistentvolumeclaims': claims(job), 'event': 2 * replicas(job), 'status': 1}

    def all_sent():
        labels = [name.split()[0] for name in sent()]
        return all(labels.count(kind) >= count for kind, count in wanted.items())
    wait_for(all_sent, f'{job["metadata"]["name"]}: {wanted}')


# What a laptop's ranks do with a job differs from a cluster; lives.py compares the later statuses, with ranks that do what it orders.
MADE = re.compile(r'pods |services |persistentvolumeclaims |event SuccessfulCreate|status Created=True$')


def differences(here, there, kinds=MADE):
    """Returns (job, label, bytes here, bytes there) for everything that differs."""
    return [(job, name, here[job].get(name), there[job].get(name)) for job in there for name in sorted({**here[job], **there[job]})
            if kinds.match(name) and here[job].get(name) != there[job].get(name)]

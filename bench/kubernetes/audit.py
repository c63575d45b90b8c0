"""The audit log of a kube-apiserver, read as data: which client sent which request, and when. It has every request with any verb, including
watches and lists."""
import collections
import datetime
import json

POLICY = {'apiVersion': 'audit.k8s.io/v1', 'kind': 'Policy', 'omitStages': ['RequestReceived'], 'rules': [{'level': 'Metadata'}]}
# Verbs that only read, and that are not counted as work for a job.
LOOKS = ('get', 'list', 'watch')
Request = collections.namedtuple('Request', 'at verb kind namespace name code')


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


def options(folder):
    """Returns the options of an API server that writes an audit log into the folder, and the log's path."""
    policy, log = folder / 'policy.json', folder / 'audit.log'
    policy.write_text(json.dumps(POLICY))
    log.touch()
    return {'audit-policy-file': policy, 'audit-log-path': log, 'audit-log-mode': 'batch', 'audit-log-batch-max-wait': '200ms',
            'audit-log-batch-buffer-size': 200000}, log


def request(said):
    """Returns the request of one line, which is JSON."""
    about = said.get('objectRef', {})
    kind = '/'.join(filter(None, (about.get('resource', said['requestURI'].partition('?')[0]), about.get('subresource'))))
    return Request(seconds(said['requestReceivedTimestamp']), said['verb'], kind, about.get('namespace', ''), about.get('name', ''),
                   said.get('responseStatus', {}).get('code'))


def read(log, user=None):
    """Returns the requests that were answered, in the order of their arrival, of all users or one."""
    found = []
    with open(log, encoding='utf-8') as lines:
        for line in lines:
            said = json.loads(line) if line.endswith('\n') else None
            if said and user in (None, said['user']['username']):
                found.append(request(said))
    return sorted(found)


class Follower:
    """The requests in a namespace that the log got after this object was created. It sends no request to the API server, so it may be used
    during a measurement."""

    def __init__(self, log, namespace):
        self.log, self.namespace, self.at, self.found = log, namespace, log.stat().st_size, []

    def requests(self):
        with open(self.log, 'rb') as file:
            file.seek(self.at)
            text = file.read()
        whole = text[:text.rfind(b'\n') + 1]
        self.at += len(whole)
        self.found += [request(json.loads(line)) for line in whole.splitlines() if self.namespace.encode() in line]
        return self.found


def busiest_second(times):
    """Returns the largest number of requests within one second, which may begin at any time."""
    begin = most = 0
    for end, at in enumerate(times):
        while times[begin] < at - 1:
            begin += 1
        most = max(most, end - begin + 1)
    return most


def percentile(values, share):
    """Returns the percentile by nearest rank, or 0 if there are no values."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))] if ranked else 0.0


def made(requests, namespace, kinds=('pods', 'services')):
    return [r for r in requests if r.verb == 'create' and r.kind in kinds and r.code == 201 and r.namespace == namespace]


def waits(created, requests, namespace, replicas):
    """Returns the seconds from the creation of each job until the last of its pods was requested; jobs with fewer pods are left out.
    `created`: {job: time}."""
    last, count = {}, collections.Counter()
    for pod in made(requests, namespace, ('pods',)):
        job = pod.name.rsplit('-', 2)[0]
        last[job] = max(last.get(job, 0), pod.at)
        count[job] += 1
    return [last[job] - at for job, at in created.items() if count[job] == replicas]


def beyond(times, qps, burst):
    """Returns by how many requests the worst span of time, of any length, exceeds a bucket of that size and refill. The times are those of the
    arrival at the server: the network may cause a difference of one.
    """
    level = most = 0.0
    before = times[0] if times else 0.0
    for at in times:
        level = max(0.0, level - (at - before) * qps) + 1
        before = at
        most = max(most, level - burst)
    return most

"""The parts of the benchmark `operator`: each creates its jobs with both operators, one after the other, and prints results from the audit
log."""
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import audit
from jobs import CORE, JOBS, Operator
from peers import Peer, Requests, namespace_jobs, status
from program import BUILD, wait_for
from proxy import Proxy, Refuse

REPLICAS, LIMIT_S, STILL_S, FLOOR_PAIRS, IDLE_S = 4, 600, 5, 800, 20
PODS_LISTED = r'/pods\?.*sendInitialEvents'
MB = 1024
PEERS = ('muster', 'upstream')
number = itertools.count(1)


class Bench:
    """One API server, and the measurements on it. `divisor`: all counts are divided by it. `runs`: how often rates are measured, in turn."""

    def __init__(self, cluster, log, divisor, peers, runs=1):
        self.cluster, self.log, self.divisor, self.peers, self.runs = cluster, log, divisor, peers, runs
        self.requests = Requests(cluster)

    def few(self, count):
        return count // self.divisor

    def floor(self, bodies=(), status=None, pairs=FLOOR_PAIRS, qps=-1):
        """Returns the pod + Service pairs per second that muster's client can create: bare ones, or with these `bodies`; with a status, a
        job's status is written before each four pairs. qps: requests per second, or -1 for no limit."""
        namespace, pairs = self.cluster.namespace(f'floor-{next(number)}'), self.few(pairs)
        bodies = [*bodies, *self.jobs_with(status, namespace, pairs // REPLICAS)] if status else bodies
        with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
            json.dump(bodies, file)
            file.flush()
            said = subprocess.run([BUILD / 'bench' / 'kubernetes_pairs', self.cluster.kubeconfig, namespace, str(pairs), '16', str(qps),
                                   *([file.name] if bodies else [])], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(said.stdout)['pairs_per_second']

    def jobs_with(self, status, namespace, count):
        """Returns jobs that no operator sees, in the form that is sent when that status is written."""
        self.requests.create_jobs(namespace, [f'job-{n}' for n in range(count)], REPLICAS - 1)
        made = self.requests.ask('GET', JOBS.format(namespace))['items']
        for job in made:
            del job['metadata']['managedFields']
            job['status'] = status
        return made

    def bodies(self, namespace):
        """Returns the bodies of a pod and a Service that an operator has created there, as it sent them."""
        made = []
        for kind, resource in (('Pod', 'pods'), ('Service', 'services')):
            found = self.requests.ask('GET', CORE.format(namespace, resource) + '?limit=1')['items'][0]
            metadata = {field: found['metadata'][field] for field in ('labels', 'annotations', 'ownerReferences') if field in found['metadata']}
            made.append({'apiVersion': 'v1', 'kind': kind, 'metadata': metadata, 'spec': found['spec']})
        pod, service = (each['spec'] for each in made)
        containers = [{field: one[field] for field in ('name', 'image', 'command', 'ports', 'env')} for one in pod['containers']]
        made[0]['spec'] = {'containers': containers, 'restartPolicy': pod['restartPolicy']}
        made[1]['spec'] = {field: service[field] for field in ('clusterIP', 'selector', 'ports')}
        return made

    def peer(self, name, qps, burst, backlog=()):
        """Starts an operator that watches its own namespace; the jobs of the backlog exist before it starts."""
        user = f'{name}-{next(number)}'
        namespace_jobs(self.cluster, user)
        self.follower = audit.Follower(self.log, user)
        self.requests.create_jobs(user, backlog, REPLICAS - 1)
        peer = Peer(self.cluster, name, user, qps, burst, user).start()
        wait_for(lambda: sum(1 for r in audit.read(self.log, user) if r.verb in ('list', 'watch')) >= 3, f'{user} watches')
        return peer

    def run(self, name, jobs, qps, burst, with_events=True, backlog=False):
        """Creates that many jobs at once, while the operator runs or before it starts; returns {what: value}."""
        names = [f'job-{n}' for n in range(jobs)]
        peer = self.peer(name, qps, burst, names if backlog else ())
        try:
            begin_cpu = 0 if backlog else peer.cpu_s()
            self.requests.create_jobs(peer.user, [] if backlog else names, REPLICAS - 1)
            self.wait_made(peer.user, 2 * jobs * REPLICAS)
            if with_events:
                self.wait_still(peer.user)
            self.last_status = self.requests.ask('GET', f'{JOBS.format(peer.user)}/{names[0]}').get('status')
            most, cpu = peer.status('VmHWM') / MB, peer.cpu_s() - begin_cpu
        finally:
            peer.close()
            self.requests.ask('DELETE', JOBS.format(peer.user))  # so that the next operator does not see them
        self.last = peer.user
        return {**self.said(peer.user, jobs, qps, burst), 'most MB': most, 'CPU s': cpu}

    def wait_made(self, namespace, count):
        """Waits until that many pods and Services are created. They are counted in the log: to count them by a request takes the API server
        milliseconds each time, and nothing counts them while a floor is measured."""
        for _ in self.requests.looks(LIMIT_S):
            if len(audit.made(self.follower.requests(), namespace)) >= count:
                break

    def wait_still(self, namespace):
        """Waits until all events have come, or none came for a while (upstream sends fewer)."""
        count, since = -1, time.monotonic()
        for _ in self.requests.looks(LIMIT_S):
            now = self.requests.count(CORE.format(namespace, 'events'))
            if now > count:
                count, since = now, time.monotonic()
            if time.monotonic() > since + STILL_S:
                break

    def said(self, user, jobs, qps, burst):
        """Returns the results from the audit log. (The API server writes it every 200 ms.)"""
        made = jobs * REPLICAS
        wait_for(lambda: len(audit.made(audit.read(self.log, user), user)) >= 2 * made, 'the audit log has all of it', 30)
        everything = audit.read(self.log, user)
        work = [r for r in everything if r.verb not in audit.LOOKS]
        pairs = audit.made(everything, user)
        last = pairs[-1].at
        created = {r.name: r.at for r in audit.read(self.log, 'admin') if r.verb == 'create' and r.kind == 'pytorchjobs' and r.namespace == user}
        waits = audit.waits(created, everything, user, REPLICAS)
        return {'requests a job until its last pod and Service': sum(1 for r in work if r.at <= last and r.kind != 'events') / jobs,
                'requests a job': len(work) / jobs, 'events a job': sum(1 for r in work if r.kind == 'events') / jobs,
                'looks a job': sum(1 for r in everything if r.verb == 'get') / jobs,
                'pairs': len(pairs) / 2, 'last pair after s': last - min(created.values()), 'pairs/s': made / (last - pairs[0].at),
                'all requests after s': work[-1].at - min(created.values()),
                'busiest second': audit.busiest_second([r.at for r in everything]),
                'beyond its budget in any time': audit.beyond([r.at for r in everything if r.kind != 'leases'], qps, burst),
                'create to all pods p50 s': audit.percentile(waits, 0.5), 'create to all pods p99 s': audit.percentile(waits, 0.99)}


def show(title, rows):
    """Prints a table. `rows`: {column: {what: value}}"""
    print(f'\n### {title}\n| | ' + ' | '.join(rows) + ' |\n|' + '---|' * (len(rows) + 1))
    for what in next(iter(rows.values())):
        print(f'| {what} | ' + ' | '.join(f'{row[what]:.2f}' if what in row else '' for row in rows.values()) + ' |', flush=True)


def by_peer(rows):
    """Puts muster's values beside upstream's."""
    return {**rows.get('muster', {}), **({'upstream': rows['upstream']} if 'upstream' in rows else {})}


def budget(bench):
    rows = {name: bench.run(name, bench.few(100), 20, 30) for name in PEERS}
    show(f'{bench.few(100)} jobs, 20 requests/s, bursts of 30', rows)
    return {**rows['muster'], 'upstream': rows['upstream'],
            "last pair, of upstream's": rows['muster']['last pair after s'] / rows['upstream']['last pair after s']}


def medians(runs):
    """Returns the median of each value that all runs have."""
    return {what: statistics.median(run[what] for run in runs) for what in runs[0]}


def raised(bench):
    """Measures in turn. There are three floors: pairs with almost no content; pairs with the content that muster has to write (labels, the
    owner, the environment), which take an API server more time from any client; and these with a job's status before each four, which are all
    the requests of muster until the last pair. The operators also start with a backlog, because an API server that creates jobs at the same
    time has less time for pods.
    """
    jobs, bodies, status = bench.few(200), None, None
    floors, rows = {'bare': [], 'same': [], 'whole': []}, {name: {'pairs/s': [], 'from a backlog': []} for name in PEERS}
    bench.floor()  # to warm the server up
    for _ in range(bench.runs):
        floors['bare'].append(bench.floor())
        for name, row in rows.items():
            row['pairs/s'].append(bench.run(name, jobs, 1000, 1000))
            bodies, status = bodies or bench.bodies(bench.last), status or bench.last_status
        floors['same'].append(bench.floor(bodies))
        floors['whole'].append(bench.floor(bodies, status))
        for name, row in rows.items():
            row['from a backlog'].append(bench.run(name, jobs, 1000, 1000, with_events=False, backlog=True))
    medians_of = {kind: statistics.median(values) for kind, values in floors.items()}
    shown = {name: share_of(row, medians_of) for name, row in rows.items()}
    bare, same, whole = medians_of.values()
    show(f'{jobs} jobs, 1,000 requests/s, medians of {bench.runs}; bare pairs {bare:.0f}/s, pairs with the same bodies {same:.0f}/s, with statuses {whole:.0f}/s',
         shown)
    ours, theirs = (shown[name]['create to all pods p99 s'] for name in PEERS)
    return {**shown['muster'], 'upstream': shown['upstream'], 'bare pairs/s': bare, 'pairs with the same bodies/s': same, 'with statuses/s': whole,
            "create to all pods p99, of upstream's": ours / theirs}


def share_of(row, floors):
    """Returns the share of each floor, with the jobs created meanwhile and before."""
    during, backlog = medians(row['pairs/s']), medians(row['from a backlog'])['pairs/s']
    named = {'bare pairs': floors['bare'], 'pairs with the same bodies': floors['same'], 'these with statuses': floors['whole']}
    shares = {f'share of {what}{how}': rate / floor for what, floor in named.items() for how, rate in (('', during['pairs/s']), (', from a backlog', backlog))}
    return {**during, 'from a backlog pairs/s': backlog, **shares}


def paced(bench):
    """Uses a budget that the API server can serve on this machine, so that the number of requests is the limit and not the processor time that
    they need."""
    jobs, qps, burst = bench.few(200), 200, 10  # the same burst as in kubernetes_pairs
    bare = statistics.median(bench.floor(pairs=200 * REPLICAS, qps=qps) for _ in range(bench.runs))
    rows = {name: medians([bench.run(name, jobs, qps, burst) for _ in range(bench.runs)]) for name in bench.peers}
    for row in rows.values():
        row['share of bare pairs'] = row['pairs/s'] / bare
    show(f'{jobs} jobs, {qps} requests/s, medians of {bench.runs}; bare pairs {bare:.0f}/s', rows)
    return {**by_peer(rows), 'bare pairs/s': bare}


def many(bench):
    rows = {name: bench.run(name, bench.few(1000), 1000, 1000, with_events=False) for name in bench.peers}
    for row in rows.values():
        row['pairs missing'] = bench.few(1000) * REPLICAS - row['pairs']
    show(f'{bench.few(1000)} jobs at once, 1,000 requests/s', rows)
    return by_peer(rows)


def idle(bench):
    """Measures an operator with nothing to do, then the first job that exists when it starts."""
    rows = {}
    for name in bench.peers:
        peer = bench.peer(name, 20, 30)
        try:
            time.sleep(STILL_S)
            before = peer.cpu_s()
            time.sleep(IDLE_S)
            rows[name] = {'MB': peer.status('VmRSS') / MB, 'most MB': peer.status('VmHWM') / MB, 'CPU ms a second': 1000 * (peer.cpu_s() - before) / IDLE_S}
        finally:
            peer.close()
        rows[name]['start to first pod s'] = statistics.median(first_pod(bench, name) for _ in range(5))
    show('idle; and from the start of the program to its first pod', rows)
    return by_peer(rows)


def started_at(pid):
    """Returns the start time in seconds since 1970, with a resolution of a clock tick (10 ms)."""
    ticks = int(pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf('SC_CLK_TCK')


def first_pod(bench, name):
    peer = bench.peer(name, 20, 30, ['job'])
    try:
        bench.requests.wait_count(CORE.format(peer.user, 'pods'), REPLICAS, LIMIT_S)
        wait_for(lambda: audit.made(audit.read(bench.log, peer.user), peer.user), 'the audit log has it', 30)
        return audit.made(audit.read(bench.log, peer.user), peer.user)[0].at - started_at(peer.running.process.pid)
    finally:
        peer.close()
        bench.requests.ask('DELETE', JOBS.format(peer.user))


def finish(bench, namespace, names):
    """Gives jobs the status of jobs that succeeded long ago."""
    path = JOBS.format(namespace)
    bench.requests.create_jobs(namespace, names, 0)
    condition = {'type': 'Succeeded', 'status': 'True', 'reason': 'PyTorchJobSucceeded', 'message': 'done', 'lastTransitionTime': '2026-01-01T00:00:00Z',
                 'lastUpdateTime': '2026-01-01T00:00:00Z'}
    body = {'status': {'conditions': [condition], 'replicaStatuses': {'Master': {'succeeded': 1}}, 'completionTime': '2026-01-01T00:00:00Z',
                       'startTime': '2026-01-01T00:00:00Z'}}
    bench.requests.side_by_side([('PATCH', f'{path}/{name}/status', body, 'application/merge-patch+json') for name in names])


def finished(bench):
    """Measures with jobs that exist when the operator starts; the new job is timed by the audit log, ten times."""
    rows = {}
    for name in bench.peers:
        user = f'{name}-{next(number)}'
        namespace_jobs(bench.cluster, user)
        finish(bench, user, [f'old-{n}' for n in range(bench.few(10000))])
        peer = Peer(bench.cluster, name, user, 1000, 1000, user).start()
        try:
            bench.requests.create_jobs(user, ['warm'], REPLICAS - 1)
            bench.requests.wait_count(CORE.format(user, 'pods'), REPLICAS, LIMIT_S)
            for n in range(1, 11):
                bench.requests.create_jobs(user, [f'new-{n}'], REPLICAS - 1)
                bench.requests.wait_count(CORE.format(user, 'pods'), REPLICAS * (n + 1), LIMIT_S)
            bench.wait_still(user)
            created = {r.name: r.at for r in audit.read(bench.log, 'admin') if r.verb == 'create' and r.kind == 'pytorchjobs' and r.namespace == user
                       and r.name.startswith('new-')}
            waits = audit.waits(created, audit.read(bench.log, user), user, REPLICAS)
            rows[name] = {'create to all pods ms': 1000 * audit.percentile(waits, 0.5), 'slowest of ten ms': 1000 * max(waits),
                          'most MB': peer.status('VmHWM') / MB}
        finally:
            peer.close()
            bench.requests.ask('DELETE', JOBS.format(user))
    show(f'{bench.few(10000)} finished jobs and one new', rows)
    return by_peer(rows)


def kubelet_says():
    """Returns the status of a running pod, as large as a kubelet, a scheduler and a network plugin make it."""
    condition = {'status': 'True', 'lastProbeTime': None, 'lastTransitionTime': '2026-01-01T00:00:00Z', 'observedGeneration': 1}
    kinds = ('PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled')
    digest = 'registry.example/team/pytorch-training@sha256:' + 64 * 'a'
    state = {'name': 'pytorch', 'image': 'registry.example/team/pytorch-training:2026-01-01', 'imageID': digest, 'ready': True, 'restartCount': 0, 'started': True,
             'containerID': 'containerd://' + 64 * 'b', 'state': {'running': {'startedAt': '2026-01-01T00:00:00Z'}}}
    return {'status': {'phase': 'Running', 'startTime': '2026-01-01T00:00:00Z', 'hostIP': '10.0.0.1', 'hostIPs': [{'ip': '10.0.0.1'}], 'podIP': '10.1.0.1',
                       'podIPs': [{'ip': '10.1.0.1'}], 'qosClass': 'BestEffort', 'conditions': [{'type': kind, **condition} for kind in kinds],
                       'containerStatuses': [state]}}


def make_running(bench, namespace, jobs):
    """Creates that many jobs, by an operator that then ends, and lets their pods run. Returns the bytes of one pod."""
    peer = Peer(bench.cluster, 'muster', namespace, 1000, 1000, namespace).start()
    try:
        bench.requests.create_jobs(namespace, [f'job-{n}' for n in range(jobs)], REPLICAS - 1)
        for kind in ('pods', 'services'):
            bench.requests.wait_count(CORE.format(namespace, kind), jobs * REPLICAS, LIMIT_S)
    finally:
        peer.close()
    path = CORE.format(namespace, 'pods')
    names = [f'job-{n}-{rank}' for n in range(jobs) for rank in ('master-0', *(f'worker-{i}' for i in range(REPLICAS - 1)))]
    notes = {'metadata': {'annotations': {'cni.example/network-status': 1200 * 'n'}}}
    merge = 'application/merge-patch+json'
    bench.requests.side_by_side([('PATCH', f'{path}/{name}', notes, merge) for name in names])
    bench.requests.side_by_side([('PATCH', f'{path}/{name}/status', kubelet_says(), merge) for name in names])
    return len(json.dumps(bench.requests.ask('GET', f'{path}/{names[0]}'), separators=(',', ':')))


def rests(operator):
    return not any(value for name, value in operator.metrics().items() if name.startswith(('workqueue_depth', 'controller_runtime_active_workers')))


def memory(bench):
    """Puts a proxy between the operator and the API server, which answers all watches with 410 at once."""
    jobs, user = bench.few(2500), f'memory-{next(number)}'
    namespace_jobs(bench.cluster, user)
    pod_bytes = make_running(bench, user, jobs)
    proxy = Proxy(bench.cluster)
    running = Operator(bench.cluster.write_kubeconfig(f'{user}-proxy', proxy.url, user={}), f'--namespace={user}', '--kube-api-qps=1000', '--kube-api-burst=1000')
    row = {}
    try:
        running.start().wait_ready()
        wait_for(lambda: rests(running), 'all jobs have had a step', LIMIT_S)
        row['listed: most MB'] = status(running.process.pid, 'VmHWM') / MB
        proxy.add(Refuse('GET', 'watch=true.*&resourceVersion=[1-9]', status=410, reason='Expired', times=len(proxy.watches)))
        lists = proxy.count('GET', PODS_LISTED)
        proxy.cut_watches()
        wait_for(lambda: proxy.count('GET', PODS_LISTED) > lists, 'pods are listed anew', LIMIT_S)
        bench.requests.create_jobs(user, ['new'], REPLICAS - 1)
        bench.requests.wait_count(CORE.format(user, 'pods'), (jobs + 1) * REPLICAS, LIMIT_S)
        row['listed anew: most MB'], row['then: MB'] = (status(running.process.pid, field) / MB for field in ('VmHWM', 'VmRSS'))
    finally:
        running.close()
        proxy.close()
        bench.requests.ask('DELETE', JOBS.format(user))
    row['bytes of a pod'] = pod_bytes
    show(f'{jobs * REPLICAS} pods that run', {'muster': row})
    return row


PARTS = {'budget': budget, 'raised': raised, 'paced': paced, 'many': many, 'finished': finished, 'memory': memory, 'idle': idle}

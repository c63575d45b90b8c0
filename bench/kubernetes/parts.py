"""The parts of the benchmark `operator`: each makes its jobs with both operators, one after the other, and prints what the audit log says."""
import itertools
import json
import subprocess
import time

import audit
from jobs import CORE, JOBS
from peers import Peer, Requests, namespace_jobs
from program import BUILD, wait_for

REPLICAS, LIMIT_S, STILL_S, FLOOR_PAIRS = 4, 600, 5, 800
MB = 1024
PEERS = ('muster', 'upstream')
number = itertools.count(1)


class Bench:
    """One API server, and what is asked of it. `divisor`: so many times fewer of everything."""

    def __init__(self, cluster, log, divisor):
        self.cluster, self.log, self.divisor = cluster, log, divisor
        self.requests = Requests(cluster)

    def few(self, count):
        return count // self.divisor

    def floor(self):
        """Bare pod + Service pairs a second through muster's client."""
        namespace = self.cluster.namespace(f'floor-{next(number)}')
        said = subprocess.run([BUILD / 'bench' / 'kubernetes_pairs', self.cluster.kubeconfig, namespace, str(self.few(FLOOR_PAIRS)), '16'],
                              stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(said.stdout)['pairs_per_second']

    def peer(self, name, qps, burst):
        """An operator that watches a namespace of its own."""
        user = f'{name}-{next(number)}'
        namespace_jobs(self.cluster, user)
        peer = Peer(self.cluster, name, user, qps, burst, user).start()
        wait_for(lambda: sum(1 for r in audit.read(self.log, user) if r.verb in ('list', 'watch')) >= 3, f'{user} watches')
        return peer

    def run(self, name, jobs, qps, burst, with_events=True):
        """That many jobs at once; {what: value}."""
        peer = self.peer(name, qps, burst)
        try:
            begin_cpu = peer.cpu_s()
            self.requests.create_jobs(peer.user, [f'job-{n}' for n in range(jobs)], REPLICAS - 1)
            for kind in ('pods', 'services'):
                self.requests.wait_count(CORE.format(peer.user, kind), jobs * REPLICAS, LIMIT_S)
            if with_events:
                self.wait_still(peer.user)
            most, cpu = peer.status('VmHWM') / MB, peer.cpu_s() - begin_cpu
        finally:
            peer.close()
            self.requests.ask('DELETE', JOBS.format(peer.user))  # the next operator sees none of them
        return {**self.said(peer.user, jobs, qps, burst), 'most MB': most, 'CPU s': cpu}

    def wait_still(self, namespace):
        """Until all events came, or none did for a while (upstream sends fewer)."""
        count, since = -1, time.monotonic()
        for _ in self.requests.looks(LIMIT_S):
            now = self.requests.count(CORE.format(namespace, 'events'))
            if now > count:
                count, since = now, time.monotonic()
            if time.monotonic() > since + STILL_S:
                break

    def said(self, user, jobs, qps, burst):
        """What the audit log says of it. (The API server writes it every 200 ms.)"""
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
                'last pair after s': last - min(created.values()), 'pairs/s': made / (last - pairs[0].at),
                'all requests after s': work[-1].at - min(created.values()),
                'busiest second': audit.busiest_second([r.at for r in everything]),
                'beyond its budget in any time': audit.beyond([r.at for r in everything if r.kind != 'leases'], qps, burst),
                'create to all pods p50 s': audit.percentile(waits, 0.5), 'create to all pods p99 s': audit.percentile(waits, 0.99)}


def show(title, rows):
    """`rows`: {column: {what: value}}"""
    print(f'\n### {title}\n| | ' + ' | '.join(rows) + ' |\n|' + '---|' * (len(rows) + 1))
    for what in next(iter(rows.values())):
        print(f'| {what} | ' + ' | '.join(f'{row[what]:.2f}' if what in row else '' for row in rows.values()) + ' |', flush=True)


def budget(bench):
    rows = {name: bench.run(name, bench.few(100), 20, 30) for name in PEERS}
    show(f'{bench.few(100)} jobs, 20 requests/s, bursts of 30', rows)
    return {**rows['muster'], 'upstream': rows['upstream'],
            "last pair, of upstream's": rows['muster']['last pair after s'] / rows['upstream']['last pair after s']}


def raised(bench):
    bench.floor()  # warms the server up
    before = bench.floor()
    rows = {name: bench.run(name, bench.few(200), 1000, 1000) for name in PEERS}
    floor = (before + bench.floor()) / 2
    for row in rows.values():
        row['share of bare pairs'] = row['pairs/s'] / floor
    show(f'{bench.few(200)} jobs, 1,000 requests/s; bare pairs {floor:.0f}/s', rows)
    return {**rows['muster'], 'upstream': rows['upstream'], 'bare pairs/s': floor,
            "create to all pods p99, of upstream's": rows['muster']['create to all pods p99 s'] / rows['upstream']['create to all pods p99 s']}


def many(bench):
    rows = {name: bench.run(name, bench.few(1000), 1000, 1000, with_events=False) for name in PEERS}
    show(f'{bench.few(1000)} jobs at once, 1,000 requests/s', rows)
    return {**rows['muster'], 'upstream': rows['upstream']}


def finish(bench, namespace, names):
    """Jobs that have succeeded long ago."""
    path = JOBS.format(namespace)
    bench.requests.create_jobs(namespace, names, 0)
    condition = {'type': 'Succeeded', 'status': 'True', 'reason': 'PyTorchJobSucceeded', 'message': 'done', 'lastTransitionTime': '2026-01-01T00:00:00Z',
                 'lastUpdateTime': '2026-01-01T00:00:00Z'}
    body = {'status': {'conditions': [condition], 'replicaStatuses': {'Master': {'succeeded': 1}}, 'completionTime': '2026-01-01T00:00:00Z',
                       'startTime': '2026-01-01T00:00:00Z'}}
    bench.requests.side_by_side([('PATCH', f'{path}/{name}/status', body, 'application/merge-patch+json') for name in names])


def finished(bench):
    """The jobs are there when the operator starts; the new one is timed by the audit log, ten times."""
    rows = {}
    for name in PEERS:
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
    return {**rows['muster'], 'upstream': rows['upstream']}


PARTS = {'budget': budget, 'raised': raised, 'many': many, 'finished': finished}

"""Kills at random, while jobs come and end: of `muster operator`, its API server and pods; MUSTER_KILLS=500 by hand, and a table is printed.

What must hold: every job comes to its end, which it keeps; no two live pods of one index at a time, by a watch of etcd; the operator keeps neither memory nor
descriptors of what is over. What pods are, and how they are killed, a test says: without nodes (test_kills.py), or on one (test_node_kills.py).
"""
import collections
import os
import random
import signal
import time
import urllib.error

from follower import Follower
from jobs import LABEL, Jobs, Operator
from program import LIMIT_S, wait_for

KILLS = int(os.environ.get('MUSTER_KILLS', 6))
# Of the first half; in the second one the operator lives, so that what it keeps can be seen.
CHANCES = {'pod': 6, 'operator': 3, 'server': 1}
WORKERS, MB = 2, 1024
OVER = ('Succeeded', 'Failed')
# So many more or less the operator keeps open, for requests to come (UNDER_WAY_MAX in src/kube/cluster/open.c).
CONNECTIONS = 16


class Judge:
    """What the watches show, against what must hold."""

    def __init__(self):
        self.live, self.ends, self.pods = {}, {}, 0

    def on_pod(self, kind, pod):
        labels, uid = pod['metadata']['labels'], pod['metadata']['uid']
        place = (pod['metadata']['ownerReferences'][0]['uid'], labels[f'{LABEL}replica-type'], labels[f'{LABEL}replica-index'])
        here = self.live.setdefault(place, set())
        self.pods += kind == 'ADDED'
        if kind == 'DELETED' or pod['status'].get('phase') in OVER:
            here.discard(uid)
        else:
            here.add(uid)
        assert len(here) < 2, f'{pod["metadata"]["name"]}: two live pods at once'

    def on_job(self, kind, job):
        name = job['metadata']['name']
        held = [c['type'] for c in job.get('status', {}).get('conditions', []) if c['status'] == 'True' and c['type'] in OVER]
        assert kind != 'DELETED', f'{name} is gone'
        assert name not in self.ends or held == self.ends[name], f'{name} was {self.ends[name]}, and is {held}'
        if held:
            self.ends[name] = held


class World:
    """One namespace with an operator. Who is one says what a job is (`create`), what becomes of pods by themselves (`serve`), how one is killed (`kill_pod`) and how
    a job's master is brought to its end (`end_master`).
    """

    live_jobs = 6

    def __init__(self, cluster, chance):
        self.cluster, self.chance = cluster, chance
        self.jobs = Jobs(cluster, cluster.namespace('kills'))
        self.operator = Operator(cluster.kubeconfig, '--namespace', self.jobs.namespace)
        self.judge, self.running, self.made, self.failed = Judge(), [], 0, set()
        self.killed = collections.Counter()
        self.followers = [Follower(cluster, 'pods', self.jobs.namespace, self.judge.on_pod),
                          Follower(cluster, 'kubeflow.org/pytorchjobs', self.jobs.namespace, self.judge.on_job)]
        self.operator.start().wait_ready()

    def close(self):
        self.operator.close()
        for follower in self.followers:
            follower.close()

    def fill(self):
        while len(self.running) < self.live_jobs:
            self.create(f'job-{self.made}')
            self.running.append(f'job-{self.made}')
            self.made += 1

    def delete_pod(self, name, options):
        try:
            self.cluster.request('DELETE', self.jobs.at('pods', name), options)
        except urllib.error.HTTPError as refused:
            assert refused.code in (404, 409), refused

    def kill(self, what):
        if what == 'pod':
            wait_for(lambda: self.serve() or self.kill_pod(), 'a pod runs')
        if what == 'operator':
            self.operator.end(signal.SIGKILL)
            self.operator.start()
        if what == 'server':
            self.cluster.stop('kube-apiserver')
            self.cluster.start_server()
        self.killed[what] += 1

    def end_job(self):
        """The oldest one."""
        name = self.running[0]

        def has_succeeded():
            self.serve()
            self.end_master(name)
            return 'Succeeded' in self.jobs.conditions(name)
        wait_for(has_succeeded, f'{name} comes to its end', 4 * LIMIT_S)
        self.running.remove(name)

    def is_quiet(self):
        self.serve()
        return not self.jobs.list('pods') and not self.jobs.list('services') and self.operator.metrics()['muster_operator_live_jobs'] == 0

    def keeps(self):
        """(descriptors, MB) of the operator, when nothing is under way."""
        while self.running:
            self.end_job()
        wait_for(self.is_quiet, 'nothing is left of jobs that are over')
        pid = self.operator.process.pid
        with open(f'/proc/{pid}/status', encoding='utf-8') as text:
            resident = int(next(line for line in text if line.startswith('VmRSS')).split()[1]) / MB
        return len(os.listdir(f'/proc/{pid}/fd')), resident

    def check(self):
        for follower in self.followers:
            follower.check()

    def run(self, count, kinds):
        for _ in range(count):
            self.fill()
            self.serve()
            self.kill(self.chance.choices(list(kinds), list(kinds.values()))[0])
            self.check()
            if self.chance.random() < 0.3:
                self.end_job()

    def has_seen_all(self):
        return self.judge.ends == {f'job-{number}': ['Succeeded'] for number in range(self.made)} and not any(self.judge.live.values())

    def rows(self):
        """What the table says: {what: value}"""
        return {**{f'kills of {what}': count for what, count in sorted(self.killed.items())}, 'jobs': self.made, 'pods made': self.judge.pods,
                'jobs that kept their end': len(self.judge.ends)}


def show(rows):
    print('\n| | |\n|---|---|\n' + '\n'.join(f'| {what} | {value} |' for what, value in rows.items()))


def kill_at_random(make):
    """All of it, in the world that make(chance) makes."""
    seed = int(os.environ.get('MUSTER_SEED', random.randrange(1 << 32)))
    print(f'MUSTER_SEED={seed}')
    begin, world = time.monotonic(), make(random.Random(seed))
    try:
        world.run(KILLS - KILLS // 2, CHANCES)
        before = world.keeps()
        world.run(KILLS // 2, {kind: weight for kind, weight in CHANCES.items() if kind != 'operator'})
        after = world.keeps()
        wait_for(world.has_seen_all, 'the watches have seen all')
        show({**world.rows(), 'descriptors before, after the second half': f'{before[0]}, {after[0]}',
              'MB before, after the second half': f'{before[1]:.1f}, {after[1]:.1f}', 'seconds': f'{time.monotonic() - begin:.0f}'})
        assert after[0] <= before[0] + CONNECTIONS and after[1] <= before[1] + 4, (before, after)
        assert world.operator.end() == 0
    finally:
        world.close()

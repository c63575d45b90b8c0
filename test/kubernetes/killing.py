"""Random kills of `muster operator`, its API server and pods, while jobs are created and end; for a run by hand set MUSTER_KILLS=500. Prints a table.

The kills come in rounds: within a round, a kill does not wait for the effects of the one before; at the end of a round everything must come to rest.
These conditions must hold: every job ends, and keeps its result; an index never has two live pods at a time, by a watch of etcd; at rest, jobs that
continue have one pod for each index, and other jobs have none; the operator keeps neither memory nor descriptors of jobs that are over. The test
defines the pods, and how they are killed: without nodes (test_kills.py), or on one (test_node_kills.py).
"""
import collections
import os
import random
import signal
import time
import urllib.error

import pytest

from follower import Follower
from jobs import LABEL, Jobs, Operator
from program import LIMIT_S, turns, wait_for

KILLS = int(os.environ.get('MUSTER_KILLS', 6))
ROUND = (10, 25)
# The next kill comes within APART_S seconds; after a kill, a job is ordered to end with the probability ENDS.
APART_S, ENDS = 1.5, 0.15
# For the first half; in the second half the operator is not killed, so that the test can see what it keeps.
CHANCES = {'pod': 6, 'operator': 3, 'server': 1}
WORKERS, MB = 2, 1024
RANKS = ('master-0', *(f'worker-{at}' for at in range(WORKERS)))
OVER = ('Succeeded', 'Failed')
# The number of open connections for requests may differ by this between rounds (OF_NAMESPACE_MAX in src/kube/cluster/open.c).
CONNECTIONS = 16


def ends_of(job):
    return [c['type'] for c in job.get('status', {}).get('conditions', []) if c['status'] == 'True' and c['type'] in OVER]


class Judge:
    """Checks what the watches show. `pods`: {name: pod}, as they are now; `ends`: {job: [condition]} of the jobs that are over."""

    def __init__(self):
        self.live, self.ends, self.pods, self.made = {}, {}, {}, 0

    def on_pod(self, kind, pod):
        labels, uid, name = pod['metadata']['labels'], pod['metadata']['uid'], pod['metadata']['name']
        place = (pod['metadata']['ownerReferences'][0]['uid'], labels[f'{LABEL}replica-type'], labels[f'{LABEL}replica-index'])
        here = self.live.setdefault(place, set())
        self.made += kind == 'ADDED'
        if kind == 'DELETED' or pod['status'].get('phase') in OVER:
            here.discard(uid)
        else:
            here.add(uid)
        self.pods[name] = pod
        if kind == 'DELETED':
            del self.pods[name]
        assert len(here) < 2, f'{name}: two live pods at once'

    def on_job(self, kind, job):
        name, held = job['metadata']['name'], ends_of(job)
        assert kind != 'DELETED', f'{name} is gone'
        assert name not in self.ends or held == self.ends[name], f'{name} was {self.ends[name]}, and is {held}'
        if held:
            self.ends[name] = held

    def phases(self):
        """Returns {pod: phase}; the phase is None if the pod is being deleted."""
        return {name: None if 'deletionTimestamp' in pod['metadata'] else pod['status'].get('phase') for name, pod in dict(self.pods).items()}


class World:
    """One namespace with an operator. A subclass defines what a job is (`create`), what happens to pods by themselves (`serve`), how a pod is killed
    (`kill_pod`) and how a job's master is brought to its end (`end_master`).
    """

    namespace, live_jobs = 'kills', 6

    def __init__(self, cluster, chance):
        self.cluster, self.chance = cluster, chance
        self.jobs = Jobs(cluster, cluster.namespace(self.namespace))
        self.operator = Operator(cluster.kubeconfig, '--namespace', self.jobs.namespace)
        self.judge, self.running, self.made, self.failed = Judge(), [], 0, set()
        self.settled, self.killed, self.begin = set(), collections.Counter(), time.monotonic()
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

    def over(self):
        """Returns the jobs that were ordered to end."""
        return {f'job-{number}' for number in range(self.made)} - set(self.running)

    def tend(self):
        self.serve()
        for name in self.over() - set(self.judge.ends):
            self.end_master(name)

    def delete_pod(self, name, options):
        try:
            self.cluster.request('DELETE', self.jobs.at('pods', name), options)
        except urllib.error.HTTPError as refused:
            assert refused.code in (404, 409), refused

    def kill(self, what):
        if what == 'pod':
            wait_for(lambda: self.tend() or self.kill_pod(), 'a pod is there')
        if what == 'operator':
            self.operator.end(signal.SIGKILL)
            self.operator.start()
        if what == 'server':
            self.cluster.stop('kube-apiserver')
            self.cluster.start_server()
        self.killed[what] += 1

    def run(self, count, kinds, before=None):
        """Makes `count` kills, in rounds. Returns what the operator kept at the end of the last round; this must never be much more than `before`, or
        than at the end of the first round."""
        while count:
            size = min(count, self.chance.randint(*ROUND))
            for _ in range(size):
                self.disturb(kinds)
            self.settle()
            kept, count = self.keeps(), count - size
            before = before or kept
            assert kept[0] <= before[0] + CONNECTIONS and kept[1] <= before[1] + 4, (before, kept)
            self.show_progress(kept)
        return kept

    def disturb(self, kinds):
        """Makes one kill, and waits for a random part of APART_S."""
        self.fill()
        self.kill(self.chance.choices(list(kinds), list(kinds.values()))[0])
        if self.chance.random() < ENDS:
            self.end_job()
        until = time.monotonic() + self.chance.uniform(0, APART_S)
        for _ in turns(APART_S):
            self.check()
            self.tend()
            if time.monotonic() >= until:
                break

    def end_job(self):
        """Orders a job to end that existed when everything was last at rest, so that each of its indexes has run."""
        names = [name for name in self.running if name in self.settled]
        if names:
            self.running.remove(self.chance.choice(names))

    def is_served(self):
        """Whether a list works: an API server that is ready may still be filling its caches for PyTorchJobs, and then refuses a list."""
        try:
            return self.jobs.list('jobs')
        except urllib.error.HTTPError as refused:
            assert refused.code in (404, 429, 503), refused
            return False

    def settle(self):
        wait_for(self.is_served, 'PyTorchJobs are served')
        for _ in turns(4 * LIMIT_S):
            self.check()
            self.tend()
            unrest = self.unrest()
            if not unrest:
                break
        else:
            pytest.fail(f'not all has come to rest: {unrest}')
        self.settled = set(self.running)
        stored = {name: ends_of(job) for name, job in self.jobs.list('jobs').items()}
        assert stored == {**{name: [] for name in self.running}, **{name: ['Succeeded'] for name in self.over()}}

    def wanted(self):
        """Returns the names of the pods of the jobs that continue."""
        return sorted(f'{job}-{rank}' for job in self.running for rank in RANKS)

    def unrest(self):
        """Returns what is not yet as it must be, or None."""
        wanted, phases = self.wanted(), self.judge.phases()
        if phases != dict.fromkeys(wanted, 'Running') or set(self.judge.ends) != self.over():
            return f'pods: {phases}, jobs that are over: {self.judge.ends}'
        services = sorted(self.jobs.list('services'))
        live = self.operator.metrics()['muster_operator_live_jobs'] if services == wanted else None
        return None if live == len(self.running) else f'Services: {services}, live jobs of the operator: {live}'

    def keeps(self):
        """Returns (descriptors, MB) of the operator, when no work is under way."""
        pid = self.operator.process.pid
        with open(f'/proc/{pid}/status', encoding='utf-8') as text:
            resident = int(next(line for line in text if line.startswith('VmRSS')).split()[1]) / MB
        return len(os.listdir(f'/proc/{pid}/fd')), resident

    def check(self):
        for follower in self.followers:
            follower.check()

    def rows(self):
        """Returns the rows of the table: {what: value}"""
        return {**{f'kills of {what}': count for what, count in sorted(self.killed.items())}, 'jobs': self.made, 'pods made': self.judge.made,
                'jobs that kept their end': len(self.judge.ends)}

    def show_progress(self, kept):
        seconds, kills = time.monotonic() - self.begin, sum(self.killed.values())
        said = ', '.join(f'{what}: {value}' for what, value in self.rows().items())
        print(f'{kills} of {KILLS} kills in {seconds:.0f} s ({seconds / kills:.1f} s each); {said}; {kept[0]} descriptors, {kept[1]:.1f} MB', flush=True)


def show(rows):
    print('\n| | |\n|---|---|\n' + '\n'.join(f'| {what} | {value} |' for what, value in rows.items()), flush=True)


def kill_at_random(make):
    """Runs the whole test in the world that make(chance) returns."""
    seed = int(os.environ.get('MUSTER_SEED', random.randrange(1 << 32)))
    print(f'MUSTER_SEED={seed}', flush=True)
    world = make(random.Random(seed))
    try:
        before = world.run(KILLS - KILLS // 2, CHANCES)
        after = world.run(KILLS // 2, {kind: weight for kind, weight in CHANCES.items() if kind != 'operator'}, before)
        world.running.clear()
        world.settle()
        show({**world.rows(), 'descriptors before, after the second half': f'{before[0]}, {after[0]}',
              'MB before, after the second half': f'{before[1]:.1f}, {after[1]:.1f}', 'seconds': f'{time.monotonic() - world.begin:.0f}'})
        assert world.operator.end() == 0
    finally:
        world.close()

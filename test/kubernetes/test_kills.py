"""Random kills (killing.py) without nodes: the test plays the kubelet."""
import urllib.error

import pytest

from cluster import Cluster
from follower import STORED
from jobs import install
from killing import WORKERS, World, kill_at_random


@pytest.fixture()
def own():
    with Cluster(**STORED) as running:
        install(running)
        yield running


class WithoutNodes(World):
    def create(self, name):
        self.jobs.create(name, workers=WORKERS, policy='ExitCode', run={'cleanPodPolicy': 'All'})

    def say(self, name, phase, code=None):
        """Writes the pod's phase; returns False if the pod does not exist any more."""
        try:
            self.jobs.set_phase(name, phase, code)
        except urllib.error.HTTPError as refused:
            assert refused.code in (404, 409), refused
            return False
        return True

    def serve(self):
        """Does a kubelet's work. A server that was killed within a deletion leaves a pod that is marked; a cluster's garbage collection would remove
        it."""
        for name, pod in self.jobs.list('pods').items():
            if 'deletionTimestamp' in pod['metadata']:
                self.delete_at_once(name)
            elif pod['status']['phase'] == 'Pending':
                self.say(name, 'Running')

    def delete_at_once(self, name):
        self.delete_pod(name, {'gracePeriodSeconds': 0})

    def kill_pod(self):
        """Deletes a pod at once, or, once in its life, writes that a signal has killed it, after which it is tried again."""
        names = [name for name, phase in self.judge.phases().items() if phase == 'Running']
        name = self.chance.choice(sorted(names)) if names else None
        if name and name not in self.failed and self.chance.random() < 0.5:
            self.failed.add(name)
            self.say(name, 'Failed', 137)
        elif name:
            self.delete_at_once(name)
        return name

    def end_master(self, name):
        """Ends the master when all pods of its job run."""
        pods = self.jobs.list('pods', name)
        running = [pod for pod in pods.values() if pod['status']['phase'] in ('Running', 'Succeeded')]
        if len(running) == 1 + WORKERS:
            self.say(f'{name}-master-0', 'Succeeded', 0)


def test_kills_at_random(own):
    kill_at_random(lambda chance: WithoutNodes(own, chance))

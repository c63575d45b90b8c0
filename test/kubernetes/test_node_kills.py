"""Kills at random (killing.py) of a real node's containers and pods, of the operator and of the API server: what runs is counted by the events of containerd,
and of no index two containers ever run at once.
"""
import pytest

import node
from containers import Containers, Run, overlaps
from follower import STORED
from jobs import JOBS, Jobs, Operator, install
from killing import WORKERS, World, kill_at_random
from node_jobs import node_cluster, rank
from program import wait_for

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(node.missing() is not None, reason=str(node.missing()))]
# It needs a moment to end, in which a second one would be seen; where its file is there, it has succeeded.
ENDS = '/ends'
SCRIPT = f'trap "sleep 0.5; exit 143" TERM; until [ -e {ENDS}/$0 ]; do sleep 1 & wait $!; done'


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    with node_cluster(tmp_path_factory.mktemp('images'), **STORED) as made:
        install(made)
        yield made


@pytest.fixture()
def containers(cluster):
    following = Containers(cluster.nodes[0])
    yield following
    following.close()


def make_job(cluster, namespace, name, ends, script=SCRIPT, **spec):
    """Its ranks run until a file of its name lies in the folder `ends`."""
    def replica(count):
        return rank(count, 'sh', '-c', script, name, policy='ExitCode', volumes={ENDS: ('ends', {'hostPath': {'path': str(ends)}})},
                    container={'resources': {'requests': {'cpu': '20m'}}}, **spec)
    cluster.request('POST', JOBS.format(namespace), {
        'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': name},
        'spec': {'runPolicy': {'cleanPodPolicy': 'All'}, 'pytorchReplicaSpecs': {'Master': replica(1), 'Worker': replica(WORKERS)}}})


class OnNode(World):
    live_jobs = 3

    def __init__(self, cluster, chance, containers, ends):
        super().__init__(cluster, chance)
        self.containers, self.ends = containers, ends

    def create(self, name):
        make_job(self.cluster, self.jobs.namespace, name, self.ends)

    def serve(self):
        """The node does."""

    def kill_pod(self):
        """Deleted, with its time to end, or, once in its life, its container is killed by a signal that is tried again."""
        pods, live = self.jobs.list('pods'), self.containers.live(self.jobs.namespace)
        names = [name for name in live if name.rsplit('-', 2)[0] in self.running and name in pods and 'deletionTimestamp' not in pods[name]['metadata']]
        name = self.chance.choice(sorted(names)) if names else None
        if name and name not in self.failed and self.chance.random() < 0.5:
            self.failed.add(name)
            self.cluster.nodes[0].kill_container(live[name])
        elif name:
            self.delete_pod(name, {})
        return name

    def end_master(self, name):
        (self.ends / name).touch()

    def check(self):
        super().check()
        self.containers.check()

    def has_seen_all(self):
        return super().has_seen_all() and not self.containers.live(self.jobs.namespace)

    def rows(self):
        return {**super().rows(), 'containers that ran': sum(map(len, self.containers.runs.values())), 'two of an index at once': len(self.containers.overlaps())}


def test_kills_at_random(cluster, containers, tmp_path):
    """Each index is seen to have run, and nothing is left on the node."""
    worlds = []

    def make(chance):
        worlds.append(OnNode(cluster, chance, containers, tmp_path))
        return worlds[0]
    kill_at_random(make)
    assert containers.overlaps() == []
    which = ['master-0', *(f'worker-{at}' for at in range(WORKERS))]
    assert {name for _, name in containers.runs} == {f'job-{number}-{rank}' for number in range(worlds[0].made) for rank in which}
    wait_for(lambda: cluster.running() == [], 'no container is left')


def test_an_operator_that_does_not_wait_is_found(cluster, containers, tmp_path):
    """To it the pod is gone: somebody has deleted it by force, while its container takes its time."""
    jobs = Jobs(cluster, cluster.namespace('forced'))
    operator = Operator(cluster.kubeconfig, '--namespace', jobs.namespace).start()
    try:
        operator.wait_ready()
        make_job(cluster, jobs.namespace, 'forced', tmp_path, script=SCRIPT.replace('sleep 0.5; exit 143', ''), terminationGracePeriodSeconds=600)
        first = wait_for(lambda: containers.live(jobs.namespace).get('forced-worker-0'), 'the worker runs')
        jobs.delete('forced-worker-0', 'pods')
        wait_for(lambda: len(containers.runs[jobs.namespace, 'forced-worker-0']) == 2, 'a second one is there')
        (tmp_path / 'forced').touch()
        wait_for(lambda: not containers.live(jobs.namespace), 'all have ended')
        found = containers.overlaps()
        assert len(found) == 1 and found[0].startswith(f'forced-worker-0: {first[:12]} ended at '), found
    finally:
        operator.close()


@pytest.mark.parametrize('times, count', [([(1, 2), (2, 3)], 0), ([(1, 3), (2, 4)], 1), ([(2, 4), (1, 3)], 1), ([(1, 9), (2, 3), (4, 5)], 2), ([(1, None), (2, 3)], 1),
                                          ([(1, 2), (3, None)], 0)])
def test_overlaps(times, count):
    assert len(overlaps([Run(f'{begin}', begin, end) for begin, end in times])) == count

"""Random kills (killing.py) of a real node's containers and pods, of the operator and of the API server: the events of containerd show the
running containers, and an index never has two at the same time.
"""
import random

import pytest

import node
from containers import Containers, Run, overlaps
from follower import STORED, remove_stored
from jobs import JOBS, install
from killing import RANKS, WORKERS, World, kill_at_random
from node_jobs import node_cluster, rank
from program import wait_for

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(node.missing() is not None, reason=str(node.missing()))]
# A rank needs a moment to end, in which a second container would be noticed; when its file exists, it succeeds.
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
    """Creates a job whose ranks run until the folder `ends` has a file of the job's name."""
    def replica(count):
        return rank(count, 'sh', '-c', script, name, policy='ExitCode', volumes={ENDS: ('ends', {'hostPath': {'path': str(ends)}})},
                    container={'resources': {'requests': {'cpu': '20m'}}}, **spec)
    cluster.request('POST', JOBS.format(namespace), {
        'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': name},
        'spec': {'runPolicy': {'cleanPodPolicy': 'All'}, 'pytorchReplicaSpecs': {'Master': replica(1), 'Worker': replica(WORKERS)}}})


class OnNode(World):
    live_jobs = 5

    def __init__(self, cluster, chance, containers, ends):
        super().__init__(cluster, chance)
        self.containers, self.ends = containers, ends

    def create(self, name):
        make_job(self.cluster, self.jobs.namespace, name, self.ends)

    def serve(self):
        """Does nothing, because the node runs the pods, but checks that the node's programs are alive."""
        self.cluster.check_alive()

    def kill_pod(self):
        """Deletes a pod in any phase, with its grace period, or, once in its life, kills its container by a signal that is tried again."""
        names, live = [name for name, phase in self.judge.phases().items() if phase in ('Pending', 'Running')], self.containers.live(self.jobs.namespace)
        name = self.chance.choice(sorted(names)) if names else None
        if name in live and name not in self.failed and self.chance.random() < 0.5:
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

    def unrest(self):
        unrest = super().unrest()
        if unrest:
            return unrest
        told, listed = self.containers.names(self.jobs.namespace), sorted(self.cluster.running())
        return None if told == listed == self.wanted() else f'containers by events: {told}, as listed: {listed}'

    def settle(self):
        super().settle()
        found = self.containers.overlaps()
        assert not found, found

    def rows(self):
        return {**super().rows(), 'containers that ran': sum(map(len, self.containers.runs.values())), 'two of an index at once': len(self.containers.overlaps()),
                'schedulers and controller managers that ended themselves': self.cluster.revived}


def test_kills_at_random(cluster, containers, tmp_path):
    """Each index has run, and nothing is left on the node."""
    worlds = []

    def make(chance):
        worlds.append(OnNode(cluster, chance, containers, tmp_path))
        return worlds[0]
    kill_at_random(make)
    assert {name for _, name in containers.runs} == {f'job-{number}-{rank}' for number in range(worlds[0].made) for rank in RANKS}


class Forcing(OnNode):
    """A world in which the operator sees no pod any more while its container still ends. (After a deletion by force, the kubelet may first see that
    the grace period is now zero, and kills the container after two seconds: on a busy machine this may be before a second container exists.)"""
    namespace, live_jobs = 'forced', 1

    def create(self, name):
        slow = SCRIPT.replace('sleep 0.5', f'until [ -e {ENDS}/go ]; do sleep 0.2; done')
        make_job(self.cluster, self.jobs.namespace, name, self.ends, script=slow, terminationGracePeriodSeconds=600)

    def kill_pod(self):
        def find():
            self.check()
            return next((name for name, phase in self.judge.phases().items() if phase == 'Running'), None)
        name = wait_for(find, 'a rank runs, and its kubelet has said so')
        remove_stored(self.cluster, 'pods', self.jobs.namespace, name)
        wait_for(lambda: len(self.containers.runs[self.jobs.namespace, name]) == 2, 'a second one is there')
        (self.ends / 'go').touch()
        return name


def test_two_of_an_index_are_found(cluster, containers, tmp_path):
    """The count of a round finds them; it fails for no other reason."""
    world = Forcing(cluster, random.Random(1), containers, tmp_path)
    try:
        with pytest.raises(AssertionError, match='job-0-.* ended at .*, .* had begun at '):
            world.run(1, {'pod': 1})
        first, second = next(runs for runs in containers.runs.values() if len(runs) == 2)
        assert len(containers.overlaps()) == 1 and second.begin < first.end
        world.end_master('job-0')
        wait_for(lambda: not containers.live(world.jobs.namespace), 'all have ended')
    finally:
        world.close()


@pytest.mark.parametrize('times, count', [([(1, 2), (2, 3)], 0), ([(1, 3), (2, 4)], 1), ([(2, 4), (1, 3)], 1), ([(1, 9), (2, 3), (4, 5)], 2), ([(1, None), (2, 3)], 1),
                                          ([(1, 2), (3, None)], 0)])
def test_overlaps(times, count):
    assert len(overlaps([Run(f'{begin}', begin, end) for begin, end in times])) == count

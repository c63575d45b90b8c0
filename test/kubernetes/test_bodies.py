"""Laptop = cluster: the requests of muster's daemon to the embedded cluster and those of muster operator to an API server have the same
bytes."""
import json

import pytest

import bodies
import lives
import upstream
from jobs import job

GPU = 'nvidia.com/gpu'


def prepare(namespace, wanted):
    """Changes what a laptop refuses in a job: the image's command is unknown, and there are no GPUs. Sorts the keys, as an API server does for such
    objects.
    """
    wanted['metadata']['namespace'] = namespace
    for role in wanted['spec']['pytorchReplicaSpecs'].values():
        container = role['template']['spec']['containers'][0]
        container.setdefault('command', ['train'])
        container.get('resources', {}).get('limits', {}).pop(GPU, None)
    return json.loads(json.dumps(wanted, sort_keys=True))


def examples(cluster):
    """Yields upstream's examples with unique names."""
    upstream.make_or_keep(cluster, '/api/v1/namespaces', {'metadata': {'name': upstream.SPACE}})
    for number, name in enumerate(upstream.EXAMPLES):
        found = upstream.example(cluster, name)
        found['metadata']['name'] += f'-{number}'
        yield found


def own():
    """Yields one job for each way in which a pod's environment is made."""
    yield job('plain', workers=3)
    yield job('lonely', workers=0)
    yield job('headless', master=0, workers=2)
    yield job('coded', policy='ExitCode', run={'cleanPodPolicy': 'All', 'backoffLimit': 3})
    elastic = job('elastic', master=0, workers=2)
    elastic['spec'].update(nprocPerNode='2', elasticPolicy={'minReplicas': 1, 'maxReplicas': 3, 'rdzvBackend': 'c10d', 'maxRestarts': 5})
    yield elastic
    keeps = job('keeps', workers=2)
    template = {'metadata': {'name': 'out'}, 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}
    keeps['spec']['pytorchReplicaSpecs']['Worker']['volumeClaimTemplates'] = [template]
    yield keeps


@pytest.mark.parametrize('which', ['upstream', 'own'])
def test_bodies_have_the_same_bytes(cluster, served, namespace, which):
    jobs = [prepare(namespace, each) for each in (examples(cluster) if which == 'upstream' else own())]
    here, there = bodies.on_laptop(jobs, bodies.wait_made), bodies.on_cluster(cluster, namespace, jobs, bodies.wait_made)
    assert bodies.differences(here, there) == []
    compared = [name for sent in there.values() for name in sent if bodies.MADE.match(name)]
    print(f'{len(compared)} bodies of {len(jobs)} jobs')
    assert len(compared) == len(jobs) + sum(4 * bodies.replicas(each) + bodies.claims(each) for each in jobs)


def succeed(life):
    """Ends the job by its master, or by a worker if there is no master."""
    life.runs()
    life.exits('master-0' if 'Master' in life.roles else 'worker-0', 0)
    life.reaches('Succeeded')


def fail(life):
    life.runs()
    life.exits('worker-1', 3)
    life.reaches('Failed', Worker={'failed': 1})


def restart(life):
    """A worker is killed by a signal and restarts; the job is suspended and resumed; then a worker ends with an exit code that is permanent."""
    life.runs()
    life.exits('worker-0', 137)
    life.reaches('Restarting')
    life.runs()
    life.suspend(True)
    life.reaches('Suspended', Worker={'active': 0})
    life.suspend(False)
    life.runs()
    life.exits('worker-1', 1)
    life.reaches('Failed')


def scripts(cluster):
    """Yields (job, its life), for each condition of a job."""
    for each in examples(cluster):
        yield each, succeed
    yield job('never', workers=2, policy='Never'), fail
    yield job('coded', workers=2, policy='ExitCode', run={'cleanPodPolicy': 'None'}), restart


def test_later_statuses_have_the_same_bytes(cluster, served, namespace, tmp_path):
    scripted = [(lives.told_by(tmp_path, prepare(namespace, each)), script) for each, script in scripts(cluster)]
    seen = []
    for target in (lives.Laptop(namespace, tmp_path), lives.OnCluster(cluster, namespace)):
        try:
            seen.append({})
            for each, script in scripted:
                life = lives.Life(target, each)
                script(life)
                seen[-1][life.name] = life.steps
        finally:
            target.close()
    here, there = seen
    assert [(name, *steps) for name in there for steps in zip(here[name], there[name], strict=True) if steps[0] != steps[1]] == []
    print(f'{sum(map(len, there.values()))} statuses of {len(there)} jobs')

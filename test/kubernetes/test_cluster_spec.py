"""--cluster_spec: files like those of ElasticDL's users, which a python3 runs that has the package `kubernetes` (that of the SDK:
client_programs.py), and their effects on this machine and, by `muster operator`, on a real API server.
"""
import json
import subprocess

import pytest

from client_programs import sdk_python
from program import BUILD, LIMIT_S, Muster, wait_for

LEAN = ['--job_name=j', '--num_workers=2', '--worker_resource_request=', '--master_resource_request=']
# As in ElasticDL's tutorial for clusters, with a variable that has the pod's name.
POOL = '''
from kubernetes import client


class MyCluster:
    def __init__(self):
        self._pool = 'elasticdl'

    def with_pod(self, pod):
        print('with_pod is called for', pod.metadata.name)
        pod.metadata.labels['my_app'] = self._pool
        pod.metadata.annotations['of'] = pod.metadata.labels['elasticdl-replica-type']
        pod.spec.tolerations = [client.V1Toleration(effect='NoSchedule', key='mycluster.com/app-pool', operator='Equal', value=self._pool)]
        pod.spec.containers[0].env.append(client.V1EnvVar(name='POOL', value=f'{self._pool} of {pod.metadata.name}'))
        return pod

    def with_service(self, service):
        service.spec.type = 'ClusterIP'
        service.spec.cluster_ip = 'None'
        return service


cluster = MyCluster()
'''
FUNCTIONS = 'def with_pod(pod):\n    {}\n    return pod\n'
GPU = {'key': 'gpu', 'operator': 'Exists'}
TOLERATION = {'effect': 'NoSchedule', 'key': 'mycluster.com/app-pool', 'operator': 'Equal', 'value': 'elasticdl'}


class Tool(Muster):
    """elasticdl train, in an environment whose first python3 has the package."""

    def train(self, text, *words, code=0):
        (self.work / 'spec.py').write_text(text)
        env = {**self.env, 'PATH': f'{sdk_python().parent}:/usr/bin:/bin'}
        done = subprocess.run([BUILD / 'bin/elasticdl', 'train', *LEAN, '--cluster_spec=spec.py', *words], cwd=self.work, env=env, capture_output=True,
                              text=True, timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL)
        assert done.returncode == code, done
        return done

    def read(self, name):
        """Returns the replicas of the job in a file, {role: replica}; the file has its Secret before it."""
        text = self.run('create', '-f', name, '--dry-run', '-o', 'json').stdout
        _, end = json.JSONDecoder().raw_decode(text)
        return json.loads(text[end:])['spec']['pytorchReplicaSpecs']

    def written(self, text, *words):
        """Returns the replicas of the job that --yaml writes."""
        self.train(text, '--job_command=true', '--yaml=job.yaml', *words)
        return self.read('job.yaml')


@pytest.fixture()
def tool():
    made = Tool()
    yield made
    made.close()


def test_pods_of_this_machine_are_as_the_file_says(tool):
    said = tool.train(POOL, '--job_command=echo $POOL > pool-$WORKER_ID; sleep 600').stderr
    assert 'with_pod is called for elasticdl-j-master\nwith_pod is called for j-edljob-worker-0\n' in said
    wait_for(lambda: all((tool.work / f'pool-{i}').exists() for i in (0, 1)), 'both workers ran')
    pods = {pod['metadata']['name']: pod for pod in tool.get('pods')}
    assert set(pods) == {'elasticdl-j-master', 'j-edljob-worker-0', 'j-edljob-worker-1'}
    for name, pod in pods.items():
        role = 'worker' if 'worker' in name else 'master'
        assert pod['spec']['tolerations'][0] == TOLERATION and pod['metadata']['annotations']['of'] == role
        labels = {'app': 'elasticdl', 'elasticdl-job-name': 'j', 'elasticdl-replica-type': role, 'my_app': 'elasticdl'}
        assert labels.items() <= pod['metadata']['labels'].items()
    wait_for(lambda: (tool.work / 'pool-1').read_text() == 'elasticdl of j-edljob-worker-0\n', 'one template is for all workers')


def test_pods_of_a_cluster_are_as_the_file_says(tool, cluster, jobs, operator):
    tool.train(POOL, '--job_command=true', '--worker_image=none', f'--namespace={jobs.namespace}', f'--kubeconfig={cluster.kubeconfig}')
    for name, pod in jobs.wait_pods('j', 3).items():
        role = 'worker' if 'worker' in name else 'master'
        assert TOLERATION in pod['spec']['tolerations'] and pod['metadata']['annotations']['of'] == role
        assert pod['metadata']['labels']['my_app'] == 'elasticdl' and pod['metadata']['labels']['elasticdl-replica-type'] == role
        assert pod['metadata']['labels']['training.kubeflow.org/job-name'] == 'j'


def test_a_file_that_changes_nothing_leaves_the_job(tool):
    flags = ['--volume=claim_name=data,mount_path=/data', '--checkpoint_dir=/data', '--worker_pod_priority=high', '--master_resource_limit=cpu=1,gpu=1']
    tool.run('train', *LEAN, '--job_command=true', '--yaml=plain.yaml', *flags)
    replicas = tool.written(FUNCTIONS.format('pass'), *flags)
    for replica in replicas.values():
        assert set(replica['template'].pop('metadata')) == {'labels'}
    assert replicas == tool.read('plain.yaml')


def test_the_json_adds_to_what_the_file_says(tool):
    more = '--cluster_spec_json={"pod_spec":{"tolerations":[{"key":"gpu","operator":"Exists"}]},"worker_pod_spec":{"labels":{"my_app":"json"}}}'
    for words in ([more], [more, '--restart_policy=OnFailure']):
        replicas = tool.written(POOL, *words)
        assert all(replica['template']['spec']['tolerations'] == [TOLERATION, GPU] for replica in replicas.values())
        assert [replicas[role]['template']['metadata']['labels']['my_app'] for role in ('Master', 'Worker')] == ['elasticdl', 'json']


def test_a_restart_policy_is_the_replicas(tool):
    policies = [replica['restartPolicy'] for replica in tool.written(FUNCTIONS.format('pod.spec.restart_policy = "Always"')).values()]
    assert policies == ['Always', 'Always']


def test_a_file_imports_what_lies_beside_it(tool):
    """A folder `kubernetes` in the working directory is not imported as the package, and nothing is written beside the file."""
    (tool.work / 'site').mkdir()
    (tool.work / 'site/beside.py').write_text('LABEL = "found"\n')
    (tool.work / 'kubernetes').mkdir()
    (tool.work / 'kubernetes/job.yaml').write_text('')
    (tool.work / 'site/spec.py').write_text('from beside import LABEL\n' + FUNCTIONS.format('pod.metadata.labels["from"] = LABEL'))
    replicas = tool.written('', '--cluster_spec=site/spec.py')
    assert replicas['Worker']['template']['metadata']['labels']['from'] == 'found'
    assert sorted(path.name for path in (tool.work / 'site').iterdir()) == ['beside.py', 'spec.py']


@pytest.mark.parametrize('text, says', [
    ('x = 1\n', 'must define `cluster`'),
    ('cluster = None\n', 'must define `cluster`'),
    ('def with_pod(pod) return pod\n', 'SyntaxError'),
    ('import nosuchpackage\n', "No module named 'nosuchpackage'"),
    (FUNCTIONS.format('raise KeyError("pool")'), 'in with_pod\n    raise KeyError("pool")\nKeyError: \'pool\''),
    ('def with_pod(pod):\n    pass\n', 'with_pod returned NoneType'),
    ('def with_pod(pod):\n    return pod.spec\n', 'with_pod returned V1PodSpec, where it must return the V1Pod'),
    (FUNCTIONS.format('pod.metadata.name = "other"'), 'with_pod changes metadata.name'),
    (FUNCTIONS.format('pod.spec = None'), 'with_pod returns a pod without a spec'),
    (FUNCTIONS.format('pod.spec.containers[0].name = "other"'), 'one container must be called pytorch'),
    (FUNCTIONS.format('pod.metadata.labels["a"] = object()'), "has no attribute 'openapi_types'"),
    (FUNCTIONS.format('pass') + 'def with_service(service):\n    service.metadata.annotations["a"] = "b"\n    return service\n',
     'with_service changes metadata.annotations'),
    (FUNCTIONS.format('pass') + 'def with_service(service):\n    pass\n', 'with_service returned NoneType'),
    ('import sys\nsys.exit(0)\n', 'ended without an answer'),
])
def test_a_file_that_fails_makes_no_job(tool, text, says):
    err = tool.train(text, '--job_command=true', code=65).stderr
    assert says in err, err
    assert tool.get('jobs') == []


@pytest.mark.heavy
def test_a_file_that_does_not_end_is_ended(tool):
    done = tool.train('import threading\nthreading.Event().wait()\n', '--job_command=true', code=75)
    assert 'spec.py: it did not end within 30 s; no job was made' in done.stderr

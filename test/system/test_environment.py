"""Every example job, on real processes: each rank starts, and sees the environment its pod would see on a cluster.

The expected environment is computed here from upstream's rules (training-operator v1.9.4: envvar.go, master.go, elastic.go), independently of
muster's C code. The Pod object must have exactly these bytes, in upstream's order; the process sees the same, except for the master's and the
rendezvous' address and port, which are this machine's.
"""
import json
import pathlib

import pytest

from conftest import SOURCE, Api, job, shell, wait_for

JOBS = sorted(p for p in (SOURCE / 'test/data/jobs').glob('*-*.yaml') if p.stem not in ('seed-azure-stack',))
DUMP = 'import json,os,sys; json.dump(dict(os.environ), open(os.path.join(sys.argv[1], os.environ["MUSTER_POD"] + ".json"), "w"))'
LOCAL = {'MASTER_ADDR', 'PET_MASTER_ADDR', 'MASTER_PORT', 'PET_MASTER_PORT', 'PET_RDZV_ENDPOINT'}


def port_of(replica):
    for container in replica['template']['spec']['containers']:
        for port in container.get('ports', []) if container['name'] == 'pytorch' else []:
            if port.get('name') == 'pytorchjob-port':
                return port['containerPort']
    return 23456


def expected_environment(job, role, index):
    """Returns [(name, value)…] in upstream's order."""
    name, spec = job['metadata']['name'], job['spec']
    replicas, elastic = spec['pytorchReplicaSpecs'], spec.get('elasticPolicy')
    total = sum(r.get('replicas', 1) for r in replicas.values())
    nproc = spec.get('nprocPerNode') or (None if elastic and elastic.get('nProcPerNode') is not None else 'auto')
    env = [('PYTHONUNBUFFERED', '1')]
    if 'Master' in replicas:
        port = str(port_of(replicas['Master']))
        address = f'{name}-master-0'
        rank = 0 if role == 'Master' else index + 1
        world = total * (int(nproc) if nproc and nproc.isdigit() else 1)
        env += [('MASTER_PORT', port), ('PET_MASTER_PORT', port), ('MASTER_ADDR', address), ('PET_MASTER_ADDR', address),
                ('WORLD_SIZE', str(world)), ('RANK', str(rank)), ('PET_NODE_RANK', str(rank))]
    if nproc:
        env += [('PET_NPROC_PER_NODE', nproc)]
    if not elastic:
        return env + [('PET_NNODES', str(total))]
    workers = replicas['Worker'].get('replicas', 1)
    least = elastic.get('minReplicas', elastic.get('maxReplicas', workers))
    most = elastic.get('maxReplicas', elastic.get('minReplicas', workers))
    host = elastic.get('rdzvHost', f'{name}-worker-0')
    env += [('PET_RDZV_ENDPOINT', f'{host}:{elastic.get("rdzvPort", port_of(replicas["Worker"]))}'),
            ('PET_RDZV_BACKEND', elastic.get('rdzvBackend', 'c10d')), ('PET_NNODES', f'{least}:{most}')]
    if 'maxRestarts' in elastic:
        env += [('PET_MAX_RESTARTS', str(elastic['maxRestarts']))]
    if elastic.get('nProcPerNode') is not None:
        env += [('PET_NPROC_PER_NODE', str(elastic['nProcPerNode']))]
    if 'rdzvId' in elastic:
        env += [('PET_RDZV_ID', elastic['rdzvId'])]
    if elastic.get('rdzvConf'):
        env += [('PET_RDZV_CONF', ','.join(f'{c["key"]}={c["value"]}' for c in elastic['rdzvConf']))]
    if elastic.get('standalone'):
        env += [('PET_STANDALONE', '')]
    return env


def objects_of(muster, path):
    """Returns the objects of a file as muster reads them, with old layouts turned into v1: a job, and the objects before it."""
    text = muster.run('run', '--dry-run', '-o', 'json', '-f', path).stdout
    decoder, objects, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        doc, end = decoder.raw_decode(text, at)
        objects += doc['items'] if doc.get('kind') == 'List' else [doc]
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return objects


def prepare(objects, folder, python):
    """Makes each container dump its environment instead of training, and adds the claims that the file lacks; returns the job and the others."""
    job = next(o for o in objects if o['kind'] == 'PyTorchJob')
    job['metadata'].pop('namespace', None)
    job['metadata'].setdefault('annotations', {})['muster.dev/gpu'] = 'none'
    for cleaner in ('cleanPodPolicy', 'ttlSecondsAfterFinished'):
        job['spec'].get('runPolicy', {}).pop(cleaner, None)  # the test reads the pods after the end
    claims = set()
    for replica in job['spec']['pytorchReplicaSpecs'].values():
        pod = replica['template']['spec']
        pod.pop('imagePullSecrets', None)
        claims |= {v['persistentVolumeClaim']['claimName'] for v in pod.get('volumes', []) if 'persistentVolumeClaim' in v}
        for container in pod['containers']:
            container['command'], container['args'] = [python, '-c', DUMP, str(folder)], []
    there = {o['metadata']['name'] for o in objects if o['kind'] == 'PersistentVolumeClaim'}
    extra = [{'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': c},
              'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Mi'}}}} for c in sorted(claims - there)]
    for other in objects:
        other['metadata'].pop('namespace', None)
    return job, extra + objects


@pytest.mark.parametrize('path', JOBS, ids=lambda p: p.stem)
def test_each_rank_sees_what_its_pod_would_see(muster, path, tmp_path):
    import sys
    folder = tmp_path / 'dumps'
    folder.mkdir()
    job, objects = prepare(objects_of(muster, path), folder, sys.executable)
    muster.run('create', '-f', muster.write('job.json', *objects))
    ranks = [(role, i) for role, r in job['spec']['pytorchReplicaSpecs'].items() for i in range(r.get('replicas', 1))]
    wait_for(lambda: len(list(folder.glob('*.json'))) == len(ranks), 'every rank writes its environment')
    for role, index in ranks:
        pod = f'{job["metadata"]["name"]}-{role.lower()}-{index}'
        expected = expected_environment(job, role, index)
        in_pod = muster.get('pod', pod)['spec']['containers'][0]['env']
        user = job['spec']['pytorchReplicaSpecs'][role]['template']['spec']['containers'][0].get('env', [])
        assert [(e['name'], e.get('value')) for e in in_pod[len(user):]] == expected
        assert in_pod[:len(user)] == user
        check_process(wait_for(lambda: read(folder / f'{pod}.json'), f'{pod} has written'), expected)


def read(path):
    try:
        return json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError):
        return None


def check_process(seen, expected):
    """Checks the variables that the process saw: they have the same values, but the addresses of this machine."""
    for name, value in dict(expected).items():
        if name not in LOCAL:
            assert seen[name] == value, name
    cluster = dict(expected)
    for name in LOCAL & set(cluster):
        local = seen[name]
        if name.endswith('ADDR'):
            assert local == '127.0.0.1'
        elif name.endswith('PORT'):
            assert 20000 <= int(local) < 32768
        elif '-worker-0:' in cluster[name]:
            assert local.startswith('127.0.0.1:')
        else:
            assert local == cluster[name], 'a rendezvous of the user is left alone'


@pytest.mark.parametrize('there', [True, False])
def test_a_job_of_the_api_runs_in_the_controllers_home_or_in_the_root(muster, there):
    """A service account's HOME is often a folder that does not exist."""
    home = muster.work / 'homes'
    if there:
        home.mkdir()
    muster.env['HOME'] = str(home)
    made = Api(muster).call('POST', '/apis/kubeflow.org/v1/namespaces/default/pytorchjobs', job('where', shell('pwd')))
    assert made[0] == 201, made
    muster.wait_condition('where', 'Succeeded')
    assert muster.run('logs', 'where').stdout == f'[rank 0] {home if there else "/"}\n'

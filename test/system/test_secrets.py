"""A Secret's value: while the Secret exists, the value is in the store, and in a file if a container asked for it; after its deletion it is
nowhere under MUSTER_HOME."""
import base64
import os
import pathlib

from conftest import Api, job, wait_for

SECRETS = '/api/v1/namespaces/default/secrets'
CANARY = 'canary-' + os.urandom(12).hex()
LATER = 'later-' + os.urandom(12).hex()


def secret(value):
    return {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'pass'}, 'stringData': {'word': value}}


def holders(folder, value):
    """Returns the files below the folder that contain the value, plain or in base64."""
    forms = [value.encode(), base64.b64encode(value.encode())]
    found = []
    for where, _, names in os.walk(folder):  # passes over folders that are removed meanwhile
        for path in (pathlib.Path(where) / name for name in names):
            try:
                if path.is_file() and any(form in path.read_bytes() for form in forms):
                    found.append(str(path.relative_to(folder)))
            except FileNotFoundError:
                continue
    return sorted(found)


def uses_it(hold):
    """Returns a job whose container has the value as a variable, in its arguments and as a file, and prints none of it."""
    script = f'test "$WORD" = "$0" && test "$(cat /mnt/pass/word)" = "$WORD" && until [ -e {hold} ]; do sleep 0.02; done'
    doc = job('user', ['sh', '-c', script, '$(WORD)'], volumes=[{'name': 'v', 'secret': {'secretName': 'pass'}}],
              mounts=[{'name': 'v', 'mountPath': '/mnt/pass'}])
    container = doc['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]
    container['env'] = [{'name': 'WORD', 'valueFrom': {'secretKeyRef': {'name': 'pass', 'key': 'word'}}}]
    return doc


def test_a_deleted_secret_is_nowhere(muster):
    muster.run('up')
    api = Api(muster, start=False)
    assert api.call('POST', SECRETS, secret(CANARY))[0] == 201
    go = muster.work / 'go'
    muster.run('create', muster.write('job.yaml', uses_it(go)))
    wait_for(lambda: [p for p in muster.get('pods') if p.get('status', {}).get('phase') == 'Running'], 'the rank runs')
    held = holders(muster.home, CANARY)
    assert [path for path in held if not path.startswith('store.db')] == [path for path in held if path.endswith('/volumes/v/word')], held
    go.touch()
    muster.wait_condition('user', 'Succeeded')
    wait_for(lambda: all(path.startswith('store.db') for path in holders(muster.home, CANARY)), 'the file is gone with the pod')
    assert api.call('PUT', SECRETS + '/pass', secret(LATER))[0] == 200
    wait_for(lambda: holders(muster.home, CANARY) == [], 'what was written over is in no file')
    assert holders(muster.home, LATER)
    assert api.call('DELETE', SECRETS + '/pass')[0] == 200
    wait_for(lambda: holders(muster.home, LATER) == [], 'what was deleted is in no file')
    muster.run('delete', 'job', 'user')
    assert holders(muster.home, CANARY) == []

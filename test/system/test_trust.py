"""Input from outside is checked where it enters: odd targets, strangers without a token, names that would leave their folder."""
import json
import pathlib
import socket
import ssl

import pytest

CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
PODS = '/api/v1/namespaces/default/pods'
MIB = 1 << 20


def config_map(name):
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, 'data': {'a': 'b'}}


@pytest.mark.parametrize('target', [
    CONFIG_MAPS + '/kept%00other', CONFIG_MAPS + '%00x', CONFIG_MAPS + '/%ff', CONFIG_MAPS + '?labelSelector=%c3',
    CONFIG_MAPS + '?labelSelector=a%00', '/muster/v1/namespaces/default%00/pods', '/muster/v1/%ff',
])
@pytest.mark.parametrize('method', ['GET', 'DELETE'])
def test_a_target_that_is_no_text_names_no_object(api, method, target):
    assert api.call('POST', CONFIG_MAPS, config_map('kept'))[0] == 201
    status, answer = api.call(method, target)
    assert (status, answer['reason']) == (400, 'BadRequest'), answer
    assert 'no text' in answer['message']
    assert api.call('GET', CONFIG_MAPS + '/kept')[0] == 200


def test_an_encoded_slash_separates_nothing(api):
    """"/configmaps/kept%2Fx" was routed as the subresource x of kept."""
    assert api.call('POST', CONFIG_MAPS, config_map('kept'))[0] == 201
    for target in (CONFIG_MAPS + '%2Fkept', PODS + '/a%2flog', '/muster/v1/namespaces/default%2Fpods'):
        status, answer = api.call('DELETE', target)
        assert (status, answer['reason']) == (400, 'BadRequest'), answer
        assert '%2F' in answer['message']
    assert api.call('GET', CONFIG_MAPS + '/kept')[0] == 200


def test_text_cut_within_a_character_is_quoted_all_the_same(api):
    """The message quotes 40 bytes of the text, and the 40th byte is half of a character."""
    status, answer = api.call('GET', CONFIG_MAPS + '?limit=' + 'x' * 39 + '%C3%A4%C3%A4')
    assert (status, answer['reason']) == (400, 'BadRequest'), answer
    assert answer['message'].endswith('x?')


def test_a_pod_whose_names_leave_its_folder_is_refused(api, muster):
    """Neither its container nor its volume creates a file anywhere."""
    container = {'name': '../../../../../escaped', 'image': 'x', 'command': ['true'],
                 'volumeMounts': [{'name': '../../../../../escaped-too', 'mountPath': '/mnt'}]}
    spec = {'containers': [container], 'volumes': [{'name': '../../../../../escaped-too', 'emptyDir': {}}]}
    status, answer = api.call('POST', PODS, {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': spec})
    assert (status, answer['reason']) == (422, 'Invalid'), answer
    fields = {cause['field'] for cause in answer['details']['causes']}
    assert {'spec.containers[0].name', 'spec.volumes[0].name'} <= fields
    assert not [path for path in muster.folder.rglob('escaped*')]


def connect(port, newest):
    """Opens a TLS connection of at most this version, whatever this machine's rules for clients are, and returns its version."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers('ALL:@SECLEVEL=0')
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, newest
    with context.wrap_socket(socket.create_connection(('127.0.0.1', port))) as connection:
        return connection.version()


@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_an_old_version_of_tls_is_refused(muster):
    muster.run('up')
    port = server_port(muster)
    assert connect(port, ssl.TLSVersion.TLSv1_2) == 'TLSv1.2'
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connect(port, ssl.TLSVersion.TLSv1_1)


def server_port(muster):
    return int(json.loads((muster.home / 'server.json').read_text())['server'].rsplit(':', 1)[1])


def memory_mib(pid):
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    return int(status.split('VmRSS:')[1].split()[0]) // 1024


def test_the_body_of_a_stranger_is_not_kept(muster):
    """There are 100 strangers, each with a body of nearly 3 MiB that never ends, and no token."""
    muster.run('up')
    pid = muster.status()
    before = memory_mib(pid)
    port = server_port(muster)
    context = ssl._create_unverified_context()
    head = f'POST {PODS} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {3 * MIB}\r\n\r\n'.encode()
    strangers = []
    for _ in range(100):
        stranger = context.wrap_socket(socket.create_connection(('127.0.0.1', port)))
        stranger.sendall(head + b'x' * (2 * MIB))
        strangers.append(stranger)
    grown = memory_mib(pid) - before
    strangers[0].sendall(b'x' * MIB)
    assert strangers[0].recv(100).startswith(b'HTTP/1.1 401 ')
    for stranger in strangers:
        stranger.close()
    assert grown < 60, f'{grown} MiB for 100 strangers'


def test_a_home_that_others_may_enter_shows_them_nothing(muster):
    """The home existed and keeps its mode; only the owner can enter what muster puts into it, so others cannot reach the volume of a claim."""
    muster.home.mkdir(parents=True, exist_ok=True)
    muster.home.chmod(0o755)
    claim = {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'c'},
             'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}
    muster.run('create', '-f', muster.write('claim.yaml', claim))
    mounted = {'volumes': [{'name': 'v', 'persistentVolumeClaim': {'claimName': 'c'}}]}
    container = {'name': 'pytorch', 'image': 'none', 'command': ['touch', '/v/written'], 'volumeMounts': [{'name': 'v', 'mountPath': '/v'}]}
    made = {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': 'a'},
            'spec': {'pytorchReplicaSpecs': {'Master': {'replicas': 1, 'restartPolicy': 'Never', 'template': {'spec': {'containers': [container], **mounted}}}}}}
    muster.run('run', '-f', muster.write('job.yaml', made))
    assert (muster.home / 'volumes/default/c/written').exists() and muster.home.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in muster.home.iterdir() if path.stat().st_mode & 0o077] == []

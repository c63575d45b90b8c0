"""How the client authenticates: with certificate files, with tokens, and with a pod's account whose token is renewed."""
import os

from conftest import CONFIG_MAPS
from program import wait_for
from test_client import config_map, ok

UNAUTHENTICATED, FORBIDDEN = -19, -12


def account(cluster, namespace, name):
    """Creates a service account that may do everything with the config maps of its namespace; returns a function that makes tokens for it."""
    at = f'/api/v1/namespaces/{namespace}/serviceaccounts'
    cluster.request('POST', at, {'metadata': {'name': name}})
    roles = f'/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}'
    cluster.request('POST', f'{roles}/roles', {'metadata': {'name': name}, 'rules': [{'apiGroups': [''], 'resources': ['configmaps'], 'verbs': ['*']}]})
    cluster.request('POST', f'{roles}/rolebindings', {
        'metadata': {'name': name}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'Role', 'name': name},
        'subjects': [{'kind': 'ServiceAccount', 'name': name, 'namespace': namespace}]})
    asked = {'spec': {'expirationSeconds': 600}}
    return lambda: cluster.request('POST', f'{at}/{name}/token', asked)['status']['token']


def test_certificates_by_file(cluster, namespace, speakers):
    file = cluster.authority.file
    config = cluster.write_kubeconfig('by-file', cluster.url, user={'client-certificate': 'admin.crt', 'client-key': file('admin.key')})
    ok(speakers('--kubeconfig', config).call('create', CONFIG_MAPS, namespace=namespace, body=config_map('a')))


def test_a_server_that_is_not_the_one_is_not_believed(cluster, namespace, speakers):
    config = cluster.write_kubeconfig('not-believed', cluster.url)
    config.write_text(config.read_text().replace('certificate-authority-data', 'other'))
    answer = speakers('--kubeconfig', config).call('get', CONFIG_MAPS, namespace=namespace, name='a')
    assert answer['code'] == -5 and 'certificate' in answer['message'], answer


def test_the_name_in_the_certificate_may_be_another(cluster, namespace, speakers):
    config = cluster.write_kubeconfig('other-name', cluster.url.replace('127.0.0.1', 'localhost'))
    other = speakers('--kubeconfig', config)
    assert other.call('list', CONFIG_MAPS, namespace=namespace)['code'] == -5
    config.write_text(config.read_text().replace('"server"', '"tls-server-name": "kubernetes.default.svc", "server"'))
    ok(speakers('--kubeconfig', config).call('list', CONFIG_MAPS, namespace=namespace))


def test_a_token_and_no_right(cluster, namespace, speakers):
    token = account(cluster, namespace, 'worker')()
    speaker = speakers('--kubeconfig', cluster.write_kubeconfig('token', cluster.url, user={'token': token}))
    ok(speaker.call('create', CONFIG_MAPS, namespace=namespace, body=config_map('a')))
    refused = speaker.call('list', CONFIG_MAPS, namespace='kube-system')
    assert (refused['code'], refused['reason']) == (FORBIDDEN, 'Forbidden')
    bad = speakers('--kubeconfig', cluster.write_kubeconfig('bad-token', cluster.url, user={'token': 'no-such'}))
    assert bad.call('list', CONFIG_MAPS, namespace=namespace)['code'] == UNAUTHENTICATED


def test_a_pod_s_token_is_renewed(cluster, namespace, speakers, tmp_path):
    """When the old token is refused, the client reads the token file again and uses the new token."""
    new_token = account(cluster, namespace, 'operator')
    (tmp_path / 'ca.crt').write_text((cluster.folder / 'ca.crt').read_text())
    (tmp_path / 'namespace').write_text(namespace)
    (tmp_path / 'token').write_text(new_token())
    env = dict(os.environ, KUBERNETES_SERVICE_HOST='127.0.0.1', KUBERNETES_SERVICE_PORT=str(cluster.port))
    speaker = speakers('--in-cluster', tmp_path, env=env)
    ok(speaker.call('create', CONFIG_MAPS, namespace=namespace, body=config_map('a')))
    watch = speaker.watch(CONFIG_MAPS, namespace=namespace)
    assert speaker.synced(watch) == ['a']
    # An account that is deleted and created again is a different account: the old token is refused.
    cluster.request('DELETE', f'/api/v1/namespaces/{namespace}/serviceaccounts/operator')
    cluster.request('POST', f'/api/v1/namespaces/{namespace}/serviceaccounts', {'metadata': {'name': 'operator'}})
    fresh = cluster.request('POST', f'/api/v1/namespaces/{namespace}/serviceaccounts/operator/token', {'spec': {'expirationSeconds': 600}})
    (tmp_path / 'token').write_text(fresh['status']['token'])

    def asked_anew():
        """Sends a request; the server may still accept an old token for some seconds."""
        return speaker.call('get', CONFIG_MAPS, namespace=namespace, name='a')
    answers = []
    wait_for(lambda: answers.append(asked_anew()) or answers[-1]['code'] == 0 and cluster_saw_new(cluster, namespace, speaker),
             'the new token is used')
    assert all(a['code'] in (0, UNAUTHENTICATED) for a in answers), answers


def cluster_saw_new(cluster, namespace, speaker):
    """Whether the server identifies the client as the new account, by its uid."""
    review = speaker.call('create', {'group': 'authentication.k8s.io', 'plural': 'selfsubjectreviews', 'kind': 'SelfSubjectReview',
                                     'cluster_wide': True}, body={'apiVersion': 'authentication.k8s.io/v1', 'kind': 'SelfSubjectReview'})
    uid = cluster.request('GET', f'/api/v1/namespaces/{namespace}/serviceaccounts/operator')['metadata']['uid']
    return review['code'] == 0 and review['object']['status']['userInfo']['uid'] == uid

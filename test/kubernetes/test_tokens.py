"""`muster operator` with its account's tokens, which expire: the file is replaced as a kubelet does it, and the token that the operator has read
becomes invalid soon after. The API server's own audit log shows which requests it has refused. For a run by hand that waits until a token of ten
minutes expires set MUSTER_TOKEN_S=700.
"""
import itertools
import json
import os
import shutil
import ssl
import time
import urllib.error
import urllib.request

import pytest

from cluster import Cluster
from jobs import Jobs, Operator, deployed, install
from program import LIMIT_S, turns, wait_for

SYSTEM, LEASE = 'muster-system', 'muster-operator'
LEASE_PATH = f'/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{LEASE}'
CORE, RIGHTS = f'/api/v1/namespaces/{SYSTEM}', '/apis/rbac.authorization.k8s.io/v1'
PATHS = {'Namespace': '/api/v1/namespaces', 'ServiceAccount': f'{CORE}/serviceaccounts', 'ClusterRole': f'{RIGHTS}/clusterroles',
         'ClusterRoleBinding': f'{RIGHTS}/clusterrolebindings', 'Role': f'{RIGHTS}/namespaces/{SYSTEM}/roles',
         'RoleBinding': f'{RIGHTS}/namespaces/{SYSTEM}/rolebindings'}
AUDIT = {'apiVersion': 'audit.k8s.io/v1', 'kind': 'Policy', 'omitStages': ['RequestReceived'], 'rules': [{'level': 'Metadata'}]}
# The shortest life that an API server allows; it accepts such a token for up to a minute longer (for clocks that differ).
TOKEN_S = 600
# When the token's file is replaced: a kubelet does it after four fifths of the token's life. In the test by hand a job is created every STEP_S.
REPLACED_S, LATE_S, STEP_S = 0.8 * TOKEN_S, TOKEN_S + 55, 10
LONG_S = int(os.environ.get('MUSTER_TOKEN_S', 0))
WORKERS, TRIES = 19, 3


@pytest.fixture()
def own():
    """A separate cluster whose audit log shows refused requests, with the rights of deploy/overlays/ha."""
    running = Cluster()
    (running.folder / 'audit.json').write_text(json.dumps(AUDIT))
    running.options = {'audit-policy-file': str(running.folder / 'audit.json'), 'audit-log-path': str(running.folder / 'audit.log')}
    with running:
        install(running)
        for made in deployed('--overlay', 'ha'):
            if made['kind'] in PATHS:
                running.request('POST', PATHS[made['kind']], made)
        yield running


class Account:
    """The folder of the operator's token, as a kubelet keeps it in a pod: the file is a link into the folder to which the link `..data` points;
    `..data` is replaced as a whole. Each token is bound to its own Secret, and becomes invalid when that is deleted.
    """

    def __init__(self, cluster, folder):
        self.cluster, self.folder, self.numbers, self.now = cluster, folder, itertools.count(1), None
        (folder / 'token').symlink_to('..data/token')
        self.replace()

    def replace(self):
        """Replaces the token. Returns (name of its Secret, token) of the one before."""
        before, number = self.now, next(self.numbers)
        name = f'{self.folder.name}-{number}'
        secret = self.cluster.request('POST', f'{CORE}/secrets', {'metadata': {'name': name}})
        bound = {'apiVersion': 'v1', 'kind': 'Secret', 'name': name, 'uid': secret['metadata']['uid']}
        asked = {'spec': {'expirationSeconds': TOKEN_S, 'boundObjectRef': bound}}
        self.now = name, self.cluster.request('POST', f'{CORE}/serviceaccounts/muster-operator/token', asked)['status']['token']
        (self.folder / f'..{number}').mkdir()
        (self.folder / f'..{number}' / 'token').write_text(self.now[1])
        (self.folder / '..data_tmp').symlink_to(f'..{number}')
        (self.folder / '..data_tmp').rename(self.folder / '..data')
        shutil.rmtree(self.folder / f'..{number - 1}', ignore_errors=True)
        return before

    def revoke(self, one):
        self.cluster.request('DELETE', f'{CORE}/secrets/{one[0]}')

    def is_refused(self, one):
        """Whether the API server refuses the token in a request of the test."""
        asked = urllib.request.Request(f'{self.cluster.url}/api/v1/pods?limit=1', headers={'Authorization': f'Bearer {one[1]}'})
        tls = ssl.create_default_context(cafile=self.cluster.authority.file('ca.crt'))
        try:
            with urllib.request.urlopen(asked, timeout=LIMIT_S, context=tls):
                return False
        except urllib.error.HTTPError as refused:
            assert refused.code == 401, refused
            return True


class World:
    """An operator of the namespace `folder.name`, with its token in that folder. It leads, or it is the only one."""

    def __init__(self, cluster, folder, elects):
        folder.mkdir()
        self.name, self.cluster, self.account = folder.name, cluster, Account(cluster, folder)
        self.jobs = Jobs(cluster, cluster.namespace(self.name))
        config = cluster.write_kubeconfig(f'config-{self.name}', cluster.url, user={'tokenFile': str(folder / 'token')}, namespace=SYSTEM)
        self.operator = Operator(config, '--namespace', self.name, *(['--leader-elect'] if elects else [])).start().wait_ready()
        if elects:
            wait_for(lambda: self.operator.said('operator.leads'), 'it leads')
            self.first = self.lease()

    def makes(self, name, workers=1):
        """Checks that a job gets its pods, and its end; both need working watches."""
        self.jobs.create(name, workers=workers)
        wait_for(lambda: self.check_alive() or len(self.jobs.list('pods', name)) == 1 + workers, f'the pods of {name}')
        self.ends(name)

    def ends(self, name):
        self.jobs.set_phase(f'{name}-master-0', 'Succeeded', 0)
        self.jobs.wait_condition(name, 'Succeeded')

    def lease(self):
        return self.cluster.request('GET', LEASE_PATH)['spec']

    def refused(self):
        """Returns [(verb, path)] of muster's requests that the API server has refused with 401, in order."""
        found = [json.loads(line) for line in (self.cluster.folder / 'audit.log').read_text().splitlines(keepends=True) if line.endswith('\n')]
        return [(said['verb'], said['requestURI'].partition('?')[0]) for said in found
                if said['userAgent'].startswith('muster/') and said.get('responseStatus', {}).get('code') == 401]

    def check_alive(self):
        """Checks that the operator runs; it would end if it lost its Lease."""
        assert self.operator.process.poll() is None, self.operator.lines()[-5:]

    def check_lease(self):
        """Checks that the Lease was held all the time, and is still renewed."""
        lease, held = self.lease(), ('holderIdentity', 'acquireTime', 'leaseTransitions')
        assert [lease.get(key) for key in held] == [self.first.get(key) for key in held]
        wait_for(lambda: self.lease()['renewTime'] > lease['renewTime'], 'it is renewed')

    def check_nothing_failed(self):
        """Checks that refused requests were repeated without a report; only refused watches are logged."""
        lines = [line for line in self.operator.lines() if 'nauthorized' in line['message'] and line['event'] != 'controller.watch']
        assert lines == [], lines
        assert [e for e in self.cluster.request('GET', self.jobs.at('events'))['items'] if e['type'] == 'Warning'] == []

    def close(self):
        self.operator.close()


@pytest.fixture()
def worlds(own, tmp_path):
    made = []

    def make(name, elects=True):
        made.append(World(own, tmp_path / name, elects))
        return made[-1]
    yield make
    for world in made:
        world.close()


def test_a_token_that_is_revoked_costs_nothing(worlds):
    """The token is revoked while many pods are created at a time: each refused request is sent once more, and succeeds; the Lease is held."""
    world = worlds('revoked')
    world.account.revoke(world.account.replace())
    for number in itertools.count():
        world.makes(f'job-{number}', WORKERS)
        if world.refused():
            break
    world.makes('after')
    refused = world.refused()
    print(f'{number + 1} jobs, {len(refused)} requests refused: {sorted(set(refused))}')
    assert max(refused.count(asked) for asked in set(refused)) <= 2 * (1 + WORKERS) and refused.count(('update', LEASE_PATH)) <= 1
    world.check_nothing_failed()
    world.check_lease()
    assert world.operator.end() == 0


def test_watches_that_are_refused_go_on(worlds):
    """A server that starts again has no tokens in its cache: all watches are refused once, and later changes are seen."""
    world = worlds('watches', elects=False)
    for number in range(TRIES):
        name = f'job-{number}'
        world.jobs.create(name)
        world.jobs.wait_pods(name, 2)
        before = world.account.replace()
        world.account.revoke(before)
        world.cluster.stop('kube-apiserver')
        world.cluster.start_server()
        world.ends(name)
        watched = [asked for asked in world.refused() if asked[0] in ('watch', 'list')]
        if watched:  # otherwise the operator had just read the new file, because its minute was over
            break
    print(f'after {number + 1}: {watched}')
    assert watched and len(watched) == len(set(watched))
    world.check_nothing_failed()
    assert world.operator.end() == 0


def wait_until(moment):
    for _ in turns(LIMIT_S):
        if time.monotonic() >= moment:
            return


@pytest.mark.heavy
@pytest.mark.skipif(not LONG_S, reason='MUSTER_TOKEN_S=700 waits until a token of ten minutes has run out')
def test_a_token_of_ten_minutes(worlds):
    """The leader's file is replaced as a kubelet does it, another operator's when its token has only seconds to live. Jobs are created and end all
    the time."""
    begin = time.monotonic()
    replaced = {worlds('early'): REPLACED_S, worlds('late', elects=False): LATE_S}
    first = {world: world.account.now for world in replaced}
    for number in itertools.count():
        lives_s = time.monotonic() - begin
        for world, at_s in replaced.items():
            if lives_s >= at_s and world.account.now == first[world]:
                world.account.replace()
                print(f'{lives_s:.0f} s: the file of {world.name} is replaced', flush=True)
            world.makes(f'job-{number}')
        if lives_s >= LONG_S:
            break
        wait_until(begin + lives_s + STEP_S)
    early, late = replaced
    refused = early.refused()
    print(f'{lives_s:.0f} s, {number + 1} jobs each; refused: {refused}', flush=True)
    for world in replaced:
        assert world.account.is_refused(first[world])
        assert not world.account.is_refused(world.account.now)
        world.check_nothing_failed()
    assert all('/namespaces/late/' in path for _, path in refused)
    assert max((refused.count(asked) for asked in refused), default=0) <= 2  # a job has two pods, which are created at the same time
    early.check_lease()
    assert early.operator.end() == late.operator.end() == 0

"""`muster operator` against a real kube-apiserver: the test creates jobs, writes pods' statuses as a kubelet would, and checks the objects in
the cluster."""
import json
import random
import re
import shutil
import signal
import time

import pytest

from cluster import Cluster
from jobs import LABEL, Jobs, deployed, install, job
from program import BUILD, SOURCE, turns, wait_for
from proxy import Cut, Hold, Proxy, Refuse

GONE_S = 60


def env_of(pod):
    return {e['name']: e['value'] for e in pod['spec']['containers'][0]['env']}


def wait_counted(operator, **numbers):
    """Waits until the operator's metrics have the numbers: it counts a write when the answer arrives, a moment after the cluster shows the write."""
    wait_for(lambda: numbers.items() <= operator.metrics().items(), f'{numbers}')


def test_pods_and_services_of_a_job(jobs, operator):
    """Names, labels, owners and environment are those of the reference tables."""
    made = jobs.create('mnist', workers=2)
    pods = jobs.wait_pods('mnist', 3)
    assert list(pods) == ['mnist-master-0', 'mnist-worker-0', 'mnist-worker-1']
    owner = {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'name': 'mnist', 'uid': made['metadata']['uid'], 'controller': True,
             'blockOwnerDeletion': True}
    for rank, (name, pod) in enumerate(pods.items()):
        kind, index = name.split('-')[1:]
        labels = {f'{LABEL}operator-name': 'pytorchjob-controller', f'{LABEL}job-name': 'mnist', f'{LABEL}replica-type': kind,
                  f'{LABEL}replica-index': index}
        role = {f'{LABEL}job-role': 'master'} if kind == 'master' else {}
        assert {key: value for key, value in pod['metadata']['labels'].items() if key.startswith(LABEL)} == labels | role
        assert pod['metadata']['ownerReferences'] == [owner] and 'initContainers' not in pod['spec']
        assert env_of(pod) == {'PYTHONUNBUFFERED': '1', 'MASTER_PORT': '23456', 'PET_MASTER_PORT': '23456', 'MASTER_ADDR': 'mnist-master-0',
                               'PET_MASTER_ADDR': 'mnist-master-0', 'WORLD_SIZE': '3', 'RANK': str(rank), 'PET_NODE_RANK': str(rank),
                               'PET_NPROC_PER_NODE': 'auto', 'PET_NNODES': '3'}
        service = jobs.get(name, 'services')
        assert service['metadata']['ownerReferences'] == [owner]
        assert service['spec']['clusterIP'] == 'None' and service['spec']['selector'] == labels
        assert [(p['name'], p['port']) for p in service['spec']['ports']] == [('pytorchjob-port', 23456)]
    assert list(jobs.conditions('mnist')) == ['Created']
    wait_for(lambda: sorted(jobs.reasons('mnist')) == ['SuccessfulCreatePod'] * 3 + ['SuccessfulCreateService'] * 3, 'six events')


def check_times(counted, host):
    """Checks that each write that was answered has a duration, and that the queue measured the wait of each step."""
    for verb in ('POST', 'PUT', 'PATCH', 'DELETE'):
        answers = sum(count for name, count in counted.items() if name.startswith('rest_client_requests_total{') and f'method="{verb}"' in name)
        assert counted.get(f'rest_client_request_duration_seconds_count{{verb="{verb}",host="{host}"}}', 0) == answers, verb
    queue = '{controller="pytorchjob-controller",name="pytorchjob-controller"}'
    waited = counted[f'workqueue_queue_duration_seconds_count{queue}']
    assert waited == counted[f'workqueue_adds_total{queue}'] - counted[f'workqueue_depth{queue}'] > 0
    worked = counted[f'workqueue_work_duration_seconds_count{queue}']
    assert worked == waited - counted['controller_runtime_active_workers{controller="pytorchjob-controller"}']


def test_it_runs_and_succeeds(jobs, operator):
    jobs.create('a', run={'cleanPodPolicy': 'All'})
    jobs.wait_pods('a', 2)
    jobs.set_phases('a', 'Running')
    jobs.wait_condition('a', 'Running')
    wait_for(lambda: jobs.get('a')['status']['replicaStatuses']['Worker'].get('active') == 1, 'the worker is counted')
    jobs.set_phase('a-master-0', 'Succeeded', 0)
    assert jobs.wait_condition('a', 'Succeeded')['reason'] == 'PyTorchJobSucceeded'
    status = jobs.get('a')['status']
    assert status['completionTime'] and status['replicaStatuses']['Master']['succeeded'] == 1
    assert [c['type'] for c in status['conditions'] if c['status'] == 'True'] == ['Created', 'Succeeded']
    wait_for(lambda: not jobs.list('pods') and not jobs.list('services'), 'cleanPodPolicy All')
    wait_counted(operator, deleted_pods_total=2)
    counted, labels = operator.metrics(), f'{{job_namespace="{jobs.namespace}",framework="pytorch"}}'
    assert [counted.get(f'training_operator_jobs_{what}_total{labels}') for what in ('created', 'successful', 'failed')] == [1, 1, None]
    assert counted['created_pods_total'] == counted['deleted_pods_total'] == 2
    queue = '{controller="pytorchjob-controller",name="pytorchjob-controller"}'
    assert counted[f'workqueue_adds_total{queue}'] > 0
    host = jobs.cluster.url.partition('://')[2]
    check_times(counted, host)
    assert counted[f'rest_client_requests_total{{code="201",host="{host}",method="POST"}}'] >= 4


def test_a_coordinator_is_started_again_in_its_pod_when_it_was_killed_only(jobs, operator):
    """The API server's version shows that containers may have restart rules; the server accepts the pod, and keeps the rules."""
    made = job('a', policy='OnFailure')
    made['metadata']['annotations'] = {'muster.dev/coordinator': 'Master'}
    jobs.cluster.request('POST', jobs.at('jobs'), made)
    jobs.wait_pods('a', 2)
    pods = {name: jobs.get(name, 'pods')['spec'] for name in ('a-master-0', 'a-worker-0')}
    assert [spec['restartPolicy'] for spec in pods.values()] == ['OnFailure', 'OnFailure']
    container = pods['a-master-0']['containers'][0]
    assert container['restartPolicy'] == 'Never'
    assert container['restartPolicyRules'] == [{'action': 'Restart', 'exitCodes': {'operator': 'NotIn', 'values': list(range(128))}}]
    assert 'restartPolicyRules' not in pods['a-worker-0']['containers'][0]
    jobs.set_phase('a-master-0', 'Failed', 65)
    assert 'its coordinator failed' in jobs.wait_condition('a', 'Failed')['message']


def test_a_share_of_the_workers_has_a_high_priority(jobs, operator):
    """elasticdl train --worker_pod_priority=high=0.5: the cluster has both classes, and the API server writes their numbers into the pods."""
    for name, value in (('high', 1000), ('low', 10)):
        jobs.cluster.request('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', {'metadata': {'name': name}, 'value': value})
    made = job('a', workers=2)
    made['metadata']['annotations'] = {'muster.dev/high-priority-workers': '1'}
    made['spec']['pytorchReplicaSpecs']['Worker']['template']['spec']['priorityClassName'] = 'low'  # the Master's template is the same object
    jobs.cluster.request('POST', jobs.at('jobs'), made)
    pods = jobs.wait_pods('a', 3)
    assert {name: pod['spec'].get('priority') for name, pod in pods.items()} == {'a-master-0': 10, 'a-worker-0': 1000, 'a-worker-1': 10}


def test_a_job_that_cannot_run_is_stalled_once(jobs, operator):
    """Without a webhook the API server accepts the job: it gets no pod, but a condition and one event; a changed job is examined again."""
    container = [{'name': 'other', 'image': 'none'}]
    long = 'n' * 60
    jobs.create(long)
    assert 'metadata.name: too long' in jobs.wait_condition(long, 'Stalled')['message']
    jobs.create('b', template={'spec': {'containers': container}})
    assert 'one container must be called pytorch' in jobs.wait_condition('b', 'Stalled')['message']
    wait_for(lambda: jobs.reasons('b') == ['PyTorchJobInvalid'], 'one event')
    jobs.patch('b', {'metadata': {'labels': {'looked': 'again'}}})
    jobs.create('c')
    jobs.wait_pods('c', 2)  # these pods are created after `b` was examined again
    assert jobs.reasons('b') == ['PyTorchJobInvalid']
    assert not jobs.list('pods', 'b') and not jobs.list('pods', long)
    jobs.patch('b', {'spec': job('b')['spec']})
    jobs.wait_pods('b', 2)
    assert 'Stalled' not in jobs.conditions('b')


def test_never_fails_with_the_first_pod(jobs, operator):
    jobs.create('a', policy='Never')
    jobs.wait_pods('a', 2)
    jobs.set_phases('a', 'Running')
    jobs.set_phase('a-worker-0', 'Failed', 3)
    assert jobs.wait_condition('a', 'Failed')['reason'] == 'PyTorchJobFailed'
    assert len(jobs.list('pods')) == 2  # cleanPodPolicy None
    wait_counted(operator, **{f'training_operator_jobs_failed_total{{job_namespace="{jobs.namespace}",framework="pytorch"}}': 1})


def test_restarts_are_bounded(jobs, operator):
    """backoffLimit also counts pods that were created again."""
    jobs.create('a', policy='ExitCode', run={'backoffLimit': 2})
    jobs.wait_pods('a', 2)
    seen = set()
    while 'Failed' not in jobs.conditions('a'):
        worker = wait_for(lambda: 'Failed' in jobs.conditions('a') or (jobs.get('a-worker-0', 'pods') or {}).get('metadata'), 'another try, or the end')
        if worker is not True and worker['uid'] not in seen:
            seen.add(worker['uid'])
            jobs.set_phase('a-worker-0', 'Failed', 137)
    assert 'backoff limit' in jobs.conditions('a')['Failed']['message']
    wait_counted(operator, failed_pods_total=3)
    assert len(seen) == 3


def test_the_deadline_fires(jobs, operator):
    begin = time.monotonic()
    jobs.create('a', run={'activeDeadlineSeconds': 2, 'cleanPodPolicy': 'Running'})
    jobs.wait_pods('a', 2)
    jobs.set_phases('a', 'Running')
    assert 'deadline' in jobs.wait_condition('a', 'Failed')['message']
    assert time.monotonic() - begin > 1  # startTime has whole seconds
    wait_for(lambda: not jobs.list('pods'), 'cleanPodPolicy Running')


def test_it_is_ended_from_outside(jobs, operator):
    """The job ends by the annotations that `muster run --context` writes on Ctrl-C: no pod continues to run, whatever cleanPodPolicy says."""
    jobs.create('a', run={'cleanPodPolicy': 'None'})
    jobs.wait_pods('a', 2)
    jobs.set_phases('a', 'Running')
    jobs.wait_condition('a', 'Running')
    jobs.patch('a', {'metadata': {'annotations': {'muster.dev/stop': 'muster run was interrupted', 'muster.dev/stop-signal': 'SIGINT'}}})
    failed = jobs.wait_condition('a', 'Failed')
    assert failed['reason'] == 'PyTorchJobStopped' and failed['message'].endswith('muster run was interrupted')
    wait_for(lambda: not jobs.list('pods'), 'its pods are gone')
    jobs.create('b', run={'cleanPodPolicy': 'None'})
    jobs.wait_pods('b', 2)
    assert not jobs.list('pods', 'a') and operator.metrics()['deleted_pods_total'] == 2


def test_a_finished_job_is_deleted_in_its_time(jobs, operator):
    jobs.create('a', workers=0, run={'ttlSecondsAfterFinished': 1})
    jobs.wait_pods('a', 1)
    jobs.set_phase('a-master-0', 'Succeeded', 0)
    wait_for(lambda: jobs.get('a') is None, 'the job is deleted')
    gone = f'training_operator_jobs_deleted_total{{job_namespace="{jobs.namespace}",framework="pytorch"}}'
    wait_for(lambda: operator.metrics().get(gone) == 1, 'it is counted')


def test_suspend_and_resume(jobs, operator):
    jobs.create('a', run={'suspend': True})
    jobs.wait_condition('a', 'Suspended')
    assert not jobs.list('pods')
    jobs.patch('a', {'spec': {'runPolicy': {'suspend': False}}})
    first = {name: pod['metadata']['uid'] for name, pod in jobs.wait_pods('a', 2).items()}
    jobs.patch('a', {'spec': {'runPolicy': {'suspend': True}}})
    wait_for(lambda: not jobs.list('pods') and not jobs.list('services'), 'it is suspended')
    jobs.patch('a', {'spec': {'runPolicy': {'suspend': False}}})
    again = {name: pod['metadata']['uid'] for name, pod in jobs.wait_pods('a', 2).items()}
    assert list(first) == list(again) and not set(first.values()) & set(again.values())


def test_a_job_of_somebody_else_is_left_alone(jobs, operator):
    jobs.create('foreign', run={'managedBy': 'kueue.x-k8s.io/multikueue'})
    jobs.create('ours')
    jobs.wait_pods('ours', 2)
    assert 'status' not in jobs.get('foreign') and not jobs.list('pods', 'foreign')


def stranger(name):
    """Returns a pod that has our labels and no owner."""
    labels = {f'{LABEL}operator-name': 'pytorchjob-controller', f'{LABEL}job-name': 'a', f'{LABEL}replica-type': 'worker', f'{LABEL}replica-index': '0'}
    return {'metadata': {'name': name, 'labels': labels}, 'spec': {'containers': [{'name': 'pytorch', 'image': 'none'}]}}


def test_strangers_are_not_touched(jobs, operator):
    """A pod that has our labels is not counted; a pod that has a name of ours is reported, and waited for."""
    def uid(name):
        return jobs.get(name, 'pods')['metadata']['uid']
    for name in ('stranger', 'a-worker-0'):
        jobs.cluster.request('POST', jobs.at('pods'), stranger(name))
    before = {name: uid(name) for name in ('stranger', 'a-worker-0')}
    jobs.create('a', run={'cleanPodPolicy': 'All'})
    wait_for(lambda: 'FailedCreatePod' in jobs.reasons('a'), 'the name is taken, and that is said')
    assert any('not of this job' in e['message'] for e in jobs.events('a'))
    jobs.delete('a-worker-0', 'pods')
    wait_for(lambda: (jobs.get('a-worker-0', 'pods') or stranger('x'))['metadata'].get('ownerReferences'), 'the name is free, and taken by the job')
    jobs.set_phases('a', 'Running')
    jobs.set_phase('a-master-0', 'Succeeded', 0)
    wait_for(lambda: list(jobs.list('pods')) == ['stranger'], 'only the stranger is left')
    assert uid('stranger') == before['stranger']


def test_a_job_that_is_deleted_while_it_is_created(cluster, jobs, proxy, operators):
    """The job is deleted while its pods are being created: the pods that exist belong to it (the garbage collector removes them), and no other
    follows."""
    through = cluster.write_kubeconfig('operator-through', proxy.url, user={})
    running = operators(through, '--namespace', jobs.namespace).start().wait_ready()
    hold = proxy.add(Hold('POST', '/pods$'))
    made = jobs.create('a')
    assert wait_for(hold.held.is_set, 'the first pod is on its way')
    jobs.delete('a')
    hold.release.set()
    wait_for(lambda: running.said('operator.gone'), 'the operator knows it')
    asked = len([1 for method, _ in proxy.seen if method == 'POST'])
    jobs.create('b')
    jobs.wait_pods('b', 2)
    for pod in jobs.list('pods', 'a').values():
        assert pod['metadata']['ownerReferences'][0]['uid'] == made['metadata']['uid']
    assert jobs.get('a') is None
    posts = [path for method, path in proxy.seen if method == 'POST'][asked:]
    assert sum(path.endswith(('/pods', '/services')) for path in posts) == 4  # the pods and Services of b
    assert running.end() == 0


def test_the_server_is_gone_for_a_while(cluster, jobs, operator):
    """No change arrives meanwhile; when the server is back, everything continues."""
    jobs.create('a')
    jobs.wait_pods('a', 2)
    cluster.stop('kube-apiserver')
    wait_for(lambda: operator.said('controller.watch'), 'the operator says that nothing comes')
    cluster.start_server()
    jobs.set_phases('a', 'Running')
    jobs.wait_condition('a', 'Running')
    jobs.create('b')
    jobs.wait_pods('b', 2)
    assert operator.health('/healthz') == 200


@pytest.mark.heavy
def test_the_server_is_gone_for_a_minute(cluster, jobs, operator):
    """What became due meanwhile is done when the server is back: a deadline, a failure, a new job."""
    for name, run in (('late', {'activeDeadlineSeconds': 20}), ('fails', {}), ('lives', {})):
        jobs.create(name, policy='ExitCode', run=run)
        jobs.wait_pods(name, 2)
        jobs.set_phases(name, 'Running')
        jobs.wait_condition(name, 'Running')
    before = {name: pod['metadata']['uid'] for name, pod in jobs.list('pods').items()}
    cluster.stop('kube-apiserver')
    gone = time.monotonic()
    for _ in turns():
        if time.monotonic() > gone + GONE_S:
            break
    assert operator.health('/healthz') == 200
    cluster.start_server()
    back = time.monotonic()
    jobs.set_phase('fails-worker-0', 'Failed', 137)
    jobs.create('new')
    jobs.wait_pods('new', 2)
    assert 'deadline' in jobs.wait_condition('late', 'Failed')['message']
    print(f'{time.monotonic() - back:.1f} s after its return')
    wait_for(lambda: 'Failed' not in [pod['status']['phase'] for pod in jobs.list('pods').values()], 'the worker is made again')
    jobs.set_phase('lives-master-0', 'Succeeded', 0)
    jobs.wait_condition('lives', 'Succeeded')
    made = [name for name, pod in jobs.list('pods').items() if before.get(name) != pod['metadata']['uid']]
    assert sorted(made) == ['fails-worker-0', 'new-master-0', 'new-worker-0'] and operator.metrics()['created_pods_total'] == 9


@pytest.mark.heavy
def test_after_an_outage_nothing_waits_out_its_pause(cluster, jobs, operators):
    """A step that failed six times because no answer came would otherwise wait for at least 32 s."""
    proxy = Proxy(cluster)
    try:
        running = operators(cluster.write_kubeconfig('outage', proxy.url, user={}), '--namespace', jobs.namespace).start().wait_ready()
        jobs.create('late', run={'activeDeadlineSeconds': 5})
        jobs.wait_pods('late', 2)
        jobs.set_phases('late', 'Running')
        jobs.wait_condition('late', 'Running')
        retries = 'workqueue_retries_total{controller="pytorchjob-controller",name="pytorchjob-controller"}'
        before = running.metrics()[retries]
        faults = [Cut(method, '.', times=None) for method in ('GET', 'POST', 'PUT', 'PATCH', 'DELETE')]
        for fault in faults:
            proxy.add(fault)
        proxy.cut_watches()
        wait_for(lambda: running.metrics()[retries] >= before + 6, 'six tries', limit_s=4 * GONE_S)
        for fault in faults:
            fault.times = 0
        back = time.monotonic()
        jobs.wait_condition('late', 'Failed')
        assert time.monotonic() - back < 25
    finally:
        proxy.close()


def test_killed_at_random_it_converges(cluster, jobs, operators, tmp_path):
    """The operator is killed 30 times while jobs are created: each pod and Service is created once."""
    seed = random.randrange(1 << 32)
    print(f'seed {seed}')
    chance = random.Random(seed)
    operator = operators(cluster.kubeconfig, '--namespace', jobs.namespace)
    start = cluster.request('GET', jobs.at('pods'))['metadata']['resourceVersion']
    for number in range(30):
        operator.start()
        jobs.create(f'job-{number}', workers=2)
        wait_for(lambda: operator.said('operator.create') or chance.random() < 0.03, 'it works')
        until = time.monotonic() + chance.random() * 0.3
        for _ in turns():
            if time.monotonic() >= until:
                break
        operator.end(signal.SIGKILL)
    operator.start()
    wait_for(lambda: len(jobs.list('pods')) == len(jobs.list('services')) == 90, '90 pods and Services')
    wait_for(lambda: operator.metrics()['muster_operator_live_jobs'] == 30, 'nothing is under way')
    assert made_once(cluster, jobs, start) == sorted(jobs.list('pods'))
    assert operator.end() == 0


def made_once(cluster, jobs, version):
    """Returns the sorted names of pods that were created since that version; a pod that was created twice is listed twice."""
    names = []
    query = f'?watch=true&resourceVersion={version}&timeoutSeconds=1'
    for line in cluster.request('GET', jobs.at('pods') + query, raw=True).splitlines():
        names += re.findall(r'^\{"type":"ADDED".*?"name":"([^"]+)"', line)
    return sorted(names)


def test_readiness_health_and_the_end(cluster, jobs, operators, proxy):
    """It is not ready while the API server does not answer, but always alive. SIGTERM and SIGINT end it with 0."""
    hold = proxy.add(Hold('GET', r'/pytorchjobs(\?|$)'))  # holds the list, not the definition
    through = cluster.write_kubeconfig('operator-held', proxy.url, user={})
    running = operators(through).start()
    assert wait_for(hold.held.is_set, 'it asks')
    assert (running.health('/healthz'), running.health('/readyz'), running.health('/else')) == (200, 503, 404)
    hold.release.set()
    running.wait_ready()
    assert running.metrics()['process_resident_memory_bytes'] < 64 << 20
    assert running.end(signal.SIGINT) == 0
    assert running.start().wait_ready().end(signal.SIGTERM) == 0
    assert running.said('operator.signal')


@pytest.mark.parametrize('words, message', [(['--no-such'], 'there is no flag --no-such'), (['--kubeconfig', '/nowhere'], '/nowhere'),
                                            (['--metrics-bind-address=1.2.3.4:5'], '--metrics-bind-address')])
def test_what_cannot_start_says_why(cluster, operators, words, message):
    running = operators(cluster.kubeconfig, *words).start()
    assert running.process.wait(60) > 0
    assert message in (running.folder / 'log').read_text()


def test_the_small_program_is_the_same(cluster, jobs, operators):
    running = operators(cluster.kubeconfig, '--namespace', jobs.namespace, program=('muster-operator',)).start().wait_ready()
    jobs.create('a')
    jobs.wait_pods('a', 2)
    assert running.end() == 0


@pytest.mark.heavy
def test_events_wait_for_their_turn(cluster, jobs, operators):
    """With one request per second, events wait longer than any other request may; none is lost."""
    running = operators(cluster.kubeconfig, '--namespace', jobs.namespace, '--kube-api-qps=1', '--kube-api-burst=1').start().wait_ready()
    jobs.create('a', workers=20)
    jobs.wait_pods('a', 21)
    assert len(jobs.events('a')) < 21  # pods and Services go first
    wait_for(lambda: len(jobs.events('a')) == 42, 'all events')
    assert not running.said('controller.event')


ROLES = {'Namespace': '/api/v1/namespaces', 'ServiceAccount': '/api/v1/namespaces/muster-system/serviceaccounts',
         'ClusterRole': '/apis/rbac.authorization.k8s.io/v1/clusterroles', 'ClusterRoleBinding': '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'}


def test_its_own_rights_are_enough(cluster, jobs, operators):
    """It has the service account of deploy/, and no other right: this is enough for a whole life of a job, with repeated events."""
    for made in deployed('--overlay', 'cluster'):
        if made['kind'] in ROLES:
            cluster.request('POST', ROLES[made['kind']], made)
    account = f'{ROLES["ServiceAccount"]}/muster-operator/token'
    token = cluster.request('POST', account, {'spec': {'expirationSeconds': 3600}})['status']['token']
    config = cluster.write_kubeconfig('own-rights', cluster.url, user={'token': token})
    running = operators(config, '--namespace', jobs.namespace).start().wait_ready()
    jobs.create('a', policy='ExitCode', run={'cleanPodPolicy': 'All', 'ttlSecondsAfterFinished': 1})
    for number in range(2):
        worker = wait_for(lambda: (jobs.wait_pods('a', 2)['a-worker-0']['status']['phase'] == 'Pending'), 'the worker')
        jobs.set_phase('a-worker-0', 'Failed', 137)
        wait_for(lambda: counted(jobs, 'Created pod: a-worker-0') == 2 + number, 'it is made again, and that is counted')
        assert worker
    jobs.set_phase('a-master-0', 'Succeeded', 0)
    wait_for(lambda: jobs.get('a') is None and not jobs.list('pods'), 'all is deleted')
    assert not [line for line in running.lines() if 'forbidden' in line['message']]
    assert running.end() == 0


def counted(jobs, message):
    return next((e['count'] for e in jobs.events('a') if e['message'] == message), 0)


def drop_counters(definition):
    """Changes the definition to be like upstream's: it does not have counters, and fields that it does not name are not kept."""
    status = definition['spec']['versions'][0]['schema']['openAPIV3Schema']['properties']['status']
    del status['properties']['counters'], status['x-kubernetes-preserve-unknown-fields']


@pytest.fixture(scope='module')
def upstream_s():
    """A separate cluster with that definition."""
    with Cluster() as running:
        install(running, drop_counters)
        yield running


@pytest.mark.parametrize('may_look', [True, False])
def test_a_definition_that_drops_counters_is_said_once(upstream_s, operators, may_look):
    """It is reported at the start; if the operator may not read the definition, it is reported when an answer lacks the first counters."""
    jobs, proxy = Jobs(upstream_s, upstream_s.namespace(f'look-{may_look}'.lower())), Proxy(upstream_s)
    try:
        if not may_look:
            proxy.add(Refuse('GET', '/customresourcedefinitions/', status=403, reason='Forbidden', times=None))
        through = upstream_s.write_kubeconfig(f'look-{may_look}', proxy.url, user={})
        running = operators(through, '--namespace', jobs.namespace).start().wait_ready()
        if may_look:
            wait_for(lambda: running.said('operator.definition', 'muster deploy --print'), 'it is said')
        jobs.create('a', policy='ExitCode')
        jobs.wait_pods('a', 2)
        jobs.set_phase('a-worker-0', 'Failed', 137)
        wait_for(lambda: running.said('operator.definition', 'muster deploy --print'), 'it is said')
        wait_for(lambda: 'Restarting' in jobs.conditions('a'), 'the failure is seen')
        assert running.end() == 0
        assert len([line for line in running.lines() if line['event'] == 'operator.definition']) == 1
    finally:
        proxy.close()


def test_the_page_is_right(cluster, served, operators):
    """docs/operator.md is right: its command runs the jobs of a namespace, its log line is logged, and its metrics exist."""
    page = (SOURCE / 'docs/operator.md').read_text()
    command, = [line for block in re.findall(r'```sh\n(.*?)```', page, re.S) for line in block.splitlines() if line.startswith('muster ')]
    running = operators(cluster.kubeconfig)
    kubeconfig = running.folder / '.kube/config'
    kubeconfig.parent.mkdir()
    shutil.copy(cluster.kubeconfig, kubeconfig)
    # The command is unchanged, except for ports that may be in use.
    running.words = ['sh', '-c', f'exec {command} --metrics-bind-address=127.0.0.1:0 --health-probe-bind-address=127.0.0.1:0']
    running.env['PATH'] = f'{BUILD}/bin:{running.env["PATH"]}'
    namespace = re.search(r'--namespace (\S+)', command)[1]
    jobs = Jobs(cluster, cluster.namespace(namespace))
    running.start().wait_ready()
    jobs.create('mnist')
    jobs.wait_pods('mnist', 2)
    shown = json.loads(re.search(r'^\{"level.*\}$', page, re.M)[0])
    logged = wait_for(lambda: running.said(shown['event'], shown['message']), 'it is logged')
    assert re.fullmatch(r'[-0-9]{10}T[0-9:]{8}\.[0-9]{3}Z', logged['time']) and list(logged) == list(shown)
    assert {**logged, 'time': ''} == {**shown, 'time': ''}
    described = re.findall(r'`([a-z_]+)`', ' '.join(re.findall(r'^\| (`[^|]*_[^|]*`) \|', page, re.M)))
    counted = running.ask('metrics-bind-address', '/metrics')[1]
    assert len(described) > 10
    assert {name for name in described if f'# TYPE {name} ' not in counted} <= {'leader_election_master_status'}  # exists only with several operators
    assert running.end() == 0


def test_tokens_are_not_logged(cluster, jobs, operators):
    config = cluster.write_kubeconfig('secret-token', cluster.url, user={'token': 'very-secret-token'})
    running = operators(config, '--zap-log-level=debug').start()
    wait_for(lambda: running.said('controller.watch', 'Unauthorized'), 'it is refused')
    assert 'very-secret-token' not in (running.folder / 'log').read_text()
    assert running.end() == 0

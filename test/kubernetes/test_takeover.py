"""Runs the commands of docs/takeover.md exactly as they are written: jobs that Kubeflow's training-operator runs are taken over while they
run, on a real API server."""
import json

import pytest

import upstream
from cluster import Cluster
from jobs import Jobs, Operator, job
from kubectl import Kubectl
from pages import read_commands, type_line
from program import wait_for

COMMANDS = read_commands('takeover.md')


@pytest.fixture()
def kubeflow():
    """A cluster as upstream's manifests set it up, without the webhooks, which are applied later."""
    with Cluster() as running:
        kubectl = Kubectl(running.kubeconfig)
        text = kubectl('kustomize', str(upstream.module() / 'manifests/overlays/standalone'))
        parts = text.split('\n---\n')
        kubectl('apply', '--server-side', '-f', '-', text='\n---\n'.join(p for p in parts if 'kind: ValidatingWebhookConfiguration' not in p))
        running.webhooks = next(p for p in parts if 'kind: ValidatingWebhookConfiguration' in p)
        wait_for(lambda: kubectl.attempt('get', 'pytorchjobs').returncode == 0, 'PyTorchJobs are served')
        yield running, kubectl


def make_jobs(jobs):
    """Creates jobs under the training-operator: one runs, one is suspended, one has succeeded, one has failed permanently."""
    jobs.create('runs', workers=2)
    jobs.wait_pods('runs', 3)
    jobs.set_phases('runs', 'Running')
    jobs.wait_condition('runs', 'Running')
    jobs.create('ended')
    jobs.wait_pods('ended', 2)
    jobs.set_phase('ended-master-0', 'Succeeded', 0)
    jobs.wait_condition('ended', 'Succeeded')
    jobs.create('failed', policy='ExitCode')
    jobs.wait_pods('failed', 2)
    jobs.set_phase('failed-worker-0', 'Failed', 1)
    jobs.wait_condition('failed', 'Failed')
    jobs.create('suspended', run={'suspend': True})
    jobs.wait_condition('suspended', 'Suspended')


def uids(jobs, kind):
    return {name: item['metadata']['uid'] for name, item in jobs.list(kind).items()}


def test_jobs_are_taken_over_while_they_run(kubeflow):
    cluster, kubectl = kubeflow
    stop, install, remove_webhooks, *rest = COMMANDS
    jobs = Jobs(cluster, cluster.namespace('team'))
    running = Operator(cluster.kubeconfig)
    peer = upstream.Upstream(cluster, cluster.kubeconfig).start()
    try:
        peer.wait_ready()
        make_jobs(jobs)
        before, services, failed = uids(jobs, 'pods'), uids(jobs, 'services'), jobs.get('failed')['status']
        # Both operators run: the second one waits, reports why, and is ready.
        running.start().wait_ready()
        said = wait_for(lambda: running.said('operator.upstream', 'waits until it is gone'), 'it is said')
        assert stop in said['message']
        assert 'TFJobs' in wait_for(lambda: running.said('operator.kinds'), 'other kinds are said')['message']
        assert not running.said('operator.status') and jobs.get('failed')['status'] == failed
        peer.end()
        kubectl('delete', 'validatingwebhookconfiguration', upstream.WEBHOOK)  # the test's own configuration, without webhooks
        kubectl('apply', '-f', '-', text=cluster.webhooks)
        type_line(cluster, stop)
        type_line(cluster, install)
        wait_for(lambda: running.said('operator.upstream', 'this one works'), 'it begins')
        left = wait_for(lambda: running.said('operator.upstream', 'webhooks are not'), 'what was left behind is said')
        assert remove_webhooks in left['message']
        assert kubectl.attempt('-n', 'team', 'create', '-f', '-', text=json.dumps(job('new'))).returncode != 0
        type_line(cluster, remove_webhooks)
        for command in rest:
            type_line(cluster, command)
        wait_for(lambda: jobs.get('failed')['status'].get('completionTime'), 'the failed one has a time from which a TTL counts')
        jobs.create('new')
        jobs.wait_pods('new', 2)
        assert uids(jobs, 'pods').items() >= before.items() and uids(jobs, 'services').items() >= services.items()
        jobs.patch('suspended', {'spec': {'runPolicy': {'suspend': False}}})
        jobs.wait_pods('suspended', 2)
        jobs.set_phase('runs-master-0', 'Succeeded', 0)
        jobs.wait_condition('runs', 'Succeeded')
        assert len(running.lines()) == len({(line['event'], line['message'], line.get('job')) for line in running.lines()})
        assert running.end() == 0
    finally:
        running.close()
        peer.close()


def test_it_steps_back_and_finds_the_one_webhook(kubeflow):
    """A training-operator that only handles other kinds does not stop muster's; if its webhook for PyTorchJobs is left, the patch in the log removes
    exactly that one."""
    cluster, kubectl = kubeflow
    jobs = Jobs(cluster, cluster.namespace('team'))
    kubectl('-n', 'kubeflow', 'patch', 'deployment', 'training-operator', '--type=json',
            '-p', '[{"op":"add","path":"/spec/template/spec/containers/0/args","value":["--enable-scheme=tfjob"]}]')
    kubectl('apply', '-f', '-', text=cluster.webhooks)
    running = Operator(cluster.kubeconfig).start().wait_ready()
    try:
        said = wait_for(lambda: running.said('operator.upstream', 'does not judge PyTorchJobs'), 'it is said')['message']
        type_line(cluster, said[said.index('kubectl patch'):])
        left = cluster.request('GET', f'{upstream.WEBHOOKS}/{upstream.WEBHOOK}')['webhooks']
        assert len(left) == 4 and not any('pytorchjob' in hook['name'] for hook in left)
        jobs.create('a')
        jobs.wait_pods('a', 2)
        assert running.end() == 0
    finally:
        running.close()

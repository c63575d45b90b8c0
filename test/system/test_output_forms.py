"""-o jsonpath and -o custom-columns, beside the real kubectl."""
import json
import shutil
import subprocess

import pytest
from conftest import LIMIT_S, SOURCE, job, shell, wait_for

TABLE = json.loads((SOURCE / 'test/data/jsonpath.json').read_text())
needs_kubectl = pytest.mark.skipif(not shutil.which('kubectl'), reason='kubectl is not installed')

TEMPLATES = [
    '{.items[*].metadata.name}',
    r'{range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}',
    '{.items[?(@.status.phase=="Failed")].metadata.name}',
    r'{.items[0].metadata.labels.training\.kubeflow\.org/job-name}',
    '{.items[0].spec.containers[0].command}',
    '{.items[*].status.containerStatuses[0].state.terminated.exitCode}',
    '{.items[-1:].metadata.name} {.kind}',
    '{.items[9]}', '{.items[?(@.x==1]}', '{', 'no braces', '{.missing}',
]
COLUMNS = [
    'NAME:.metadata.name,PHASE:.status.phase',
    'NAME:metadata.name,LABELS:.metadata.labels,NONE:.nothing',
    'A:{.metadata.name},CODE:.status.containerStatuses[*].state.terminated.exitCode,CMD:.spec.containers[0].command',
    r'JOB:.metadata.labels.training\.kubeflow\.org/job-name',
    'NAME', 'NAME:', 'A:.metadata[', ':.metadata.name',
]


def finished(muster):
    muster.write('job.yaml', job('forms', shell('[ $RANK = 0 ] || exit 3; sleep 1000'), workers=1))
    muster.run('run', '-f', 'job.yaml', code=3)
    wait_for(lambda: [pod['metadata']['name'] for pod in muster.get('pods')] == ['forms-worker-0'], 'the pod that ran is gone')


class Cluster:
    def __init__(self, muster):
        self.muster = muster
        self.config = muster.work / 'kubeconfig'
        self.config.write_text(muster.run('kubeconfig').stdout)

    def kubectl(self, *words):
        return subprocess.run(['kubectl', '--kubeconfig', self.config, *words], capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def compare(self, *words):
        theirs = self.kubectl(*words)
        ours = self.muster.run(*words, code=None)
        assert (ours.returncode != 0) == (theirs.returncode != 0), (words, ours.stderr, theirs.stderr)
        assert ours.stdout == (theirs.stdout if theirs.returncode == 0 else ''), words


@needs_kubectl
def test_the_table_is_kubectls(muster):
    """Each row needs a process, so only every fourth row is tested, for machines with two cores."""
    path = muster.work / 'document.json'
    path.write_text(json.dumps(TABLE['document']))
    for template, expected in TABLE['cases'][::4]:
        done = subprocess.run(['kubectl', 'annotate', '--local', '--overwrite', '-f', path, 'k=v', '-o', f'jsonpath={template}'],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert (None if done.returncode else done.stdout) == expected, template


@needs_kubectl
def test_muster_prints_what_kubectl_prints(muster):
    finished(muster)
    cluster = Cluster(muster)
    for template in TEMPLATES:
        cluster.compare('get', 'pods', '-o', f'jsonpath={template}')
    cluster.compare('get', 'pod', 'forms-master-0', '-o', 'jsonpath={.metadata.name}')
    cluster.compare('get', 'pytorchjob', 'forms', '-o', 'jsonpath={.status.conditions[-1:].reason}')
    for columns in COLUMNS:
        cluster.compare('get', 'pods', '-o', f'custom-columns={columns}')
    cluster.compare('get', 'pod', 'forms-master-0', '-o', 'custom-columns=N:.metadata.name,P:.status.phase')
    cluster.compare('get', 'pods', '--no-headers', '-o', 'custom-columns=N:.metadata.name,P:.status.phase')
    cluster.compare('get', 'services', '-l', 'no=such', '-o', 'custom-columns=N:.metadata.name')
    cluster.compare('get', 'services', '-l', 'no=such', '-o', 'jsonpath={.items[*].metadata.name}')


def test_where_json_is_taken(muster):
    muster.write('job.yaml', job('forms', shell('true')))
    done = muster.run('create', '-f', 'job.yaml', '-o', 'jsonpath={.metadata.name}{"\\n"}')
    assert done.stdout == 'forms\n'
    done = muster.run('apply', '-f', 'job.yaml', '-o', 'custom-columns=KIND:.kind,NAME:.metadata.name')
    assert done.stdout == 'KIND         NAME\nPyTorchJob   forms\n'
    muster.wait_condition('forms', 'Succeeded')
    reasons = muster.run('events', 'forms', '-o', 'jsonpath={range .items[*]}{.reason}{"\\n"}{end}').stdout.split('\n')
    assert 'PyTorchJobSucceeded' in reasons
    rows = muster.run('events', 'forms', '-o', 'custom-columns=R:.reason,O:.involvedObject.name').stdout.splitlines()
    assert rows[0].split() == ['R', 'O'] and len(rows) == len(reasons)


@pytest.mark.parametrize('words, says', [
    (['-o', 'jsonpath={.a'], 'get: jsonpath: at character 1: the { is not closed'),
    (['-o', 'jsonpath'], "get: -o jsonpath needs a template: jsonpath='{.metadata.name}'"),
    (['--output=jsonpath='], '--output jsonpath needs a template'),
    (['-o', 'custom-columns='], 'needs columns: custom-columns=NAME:.metadata.name'),
    (['-o', 'custom-columns=A:.b,C'], "get: custom-columns: 'C' must be HEADER:FIELD"),
    (['-o', 'go-template={{.a}}'], '-o go-template is not supported; use jsonpath='),
    (['-o', 'jsonpath-file=x'], 'use jsonpath="$(cat FILE)"'),
    (['-o', 'yaml=x'], '-o must be one of json|yaml|wide|name|jsonpath=TEMPLATE|custom-columns=HEADER:FIELD,…'),
])
def test_a_mistake_is_named(muster, words, says):
    assert says in muster.run('get', 'pods', *words, code=64).stderr


def test_a_watch_prints_a_row_for_each_change(muster):
    muster.run('run', '-n', '2', '--name', 'forms', '--', 'true')
    process = muster.start('get', 'pods', '-w', '-o', 'custom-columns=NAME:.metadata.name,PHASE:.status.phase')
    lines = [process.stdout.readline().split() for _ in range(3)]
    process.terminate()
    assert lines[0] == ['NAME', 'PHASE'] and sorted(line[0] for line in lines[1:]) == ['forms-master-0', 'forms-worker-0']

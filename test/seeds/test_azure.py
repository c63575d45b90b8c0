"""PyTorch on Kubeflow on Azure Stack: every command of the document, and the job that it runs."""
import json
import re
import subprocess
import textwrap

import pytest

from seed import AZURE_IMAGE, AZURE_JOB, JOBS, LOSS, mnist_command, row, run_by_hand

JOB = 'pytorch-dist-mnist-gloo-demo'
PODS = [f'{JOB}-master-0'] + [f'{JOB}-worker-{i}' for i in range(3)]
SHORT = mnist_command('--images', 10240, '--no-cuda')


@pytest.fixture(scope='module')
def created(shared_muster):
    """The document's job, created once; the tests below look at it while it runs and afterwards."""
    answer = shared_muster.run('create', '-f', AZURE_JOB, '--image', f'{AZURE_IMAGE}={SHORT}').stdout
    shared_muster.run('wait', '--for=condition=Running', f'pytorchjob/{JOB}', '--timeout', '60s')
    return shared_muster, answer


@pytest.fixture(scope='module')
def finished(created):
    program = created[0]
    program.run('wait', '--for=condition=Succeeded', f'pytorchjob/{JOB}', '--timeout', '100s')
    return program


@row('azure-1')
def test_pytorchjob_is_known_from_the_first_second(muster):
    done = muster.run('get', 'pytorchjobs')
    assert 'No resources found in default namespace.' in done.stdout + done.stderr


@row('azure-2')
def test_set_sets_nothing_in_a_unix_shell():
    script = 'set MY_GITHUB_ACCOUNT=rollingstones; set MY_GITHUB_TAG=t:1.0; echo "[$MY_GITHUB_ACCOUNT/$MY_GITHUB_TAG]"'
    assert subprocess.run(['sh', '-c', script], env={}, text=True, capture_output=True, check=True).stdout == '[/]\n'


PRIVATE = '''apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: entrypoint}
spec:
  pytorchReplicaSpecs:
    Master:
      restartPolicy: Never
      template:
        spec:
          imagePullSecrets: [{name: nowhere}]
          containers:
            - name: pytorch
              image: rollingstones/pytorch-dist-mnist-test:1.0
              args: [--backend, gloo]
'''


@row('azure-3', 'azure-4')
def test_image_is_never_pulled_and_its_entrypoint_comes_from_the_command_line(muster):
    (muster.work / 'job.yaml').write_text(PRIVATE)
    done = muster.run('run', '-f', 'job.yaml', '--image', "rollingstones/pytorch-dist-mnist-test:1.0=echo 'two words'")
    assert 'two words --backend gloo' in done.stdout


@row('azure-4')
def test_entrypoint_may_be_an_annotation(muster):
    note = 'metadata: {name: entrypoint, annotations: {muster.dev/command: echo by-annotation}}'
    (muster.work / 'job.yaml').write_text(PRIVATE.replace('metadata: {name: entrypoint}', note))
    assert 'by-annotation --backend gloo' in muster.run('run', '-f', 'job.yaml').stdout


@row('azure-5')
def test_image_without_a_command_is_refused_with_the_option_to_give(muster):
    done = muster.run('run', '-f', AZURE_JOB, code=None)
    assert 64 <= done.returncode <= 78
    assert '--image' in done.stderr and AZURE_IMAGE in done.stderr
    assert muster.get('jobs') == [] and muster.get('pods') == []


@row('azure-6')
@pytest.mark.parametrize('verb', [['lint'], ['run', '-f'], ['create', '-f']])
def test_file_as_pasted_is_refused_by_line_and_hint(muster, verb):
    done = muster.run(*verb, JOBS.parent / 'lint/azure-as-pasted.yaml', code=65)
    said = done.stdout + done.stderr
    assert 'azure-as-pasted.yaml:14:13: ' in said and 'YAML syntax error' in said, said
    assert re.search(r'azure-as-pasted\.yaml:6:1: .*did you mean spec\.pytorchReplicaSpecs\?', said), said
    if verb != ['lint']:
        assert muster.get('jobs') == []


@row('azure-7')
def test_file_with_its_indentation_mended_has_no_error(muster):
    done = muster.run('lint', AZURE_JOB)
    assert 'error' not in (done.stdout + done.stderr).lower().replace('0 errors', '').replace('no errors', '')


@row('azure-7')
def test_file_with_the_page_s_four_blanks_before_each_line_runs(muster):
    (muster.work / 'job.yaml').write_text(textwrap.indent(AZURE_JOB.read_text(), '    '))
    said = [[(p['line'], p['message'], p['hint']) for p in json.loads(muster.run('lint', '-o', 'json', path).stdout)]
            for path in (AZURE_JOB, 'job.yaml')]
    assert said[0] == said[1]
    muster.run('run', '-f', 'job.yaml', '--image', f'{AZURE_IMAGE}=echo')


@row('azure-6')
def test_four_blanks_before_each_line_change_only_the_columns(muster):
    pasted = JOBS.parent / 'lint/azure-as-pasted.yaml'
    (muster.work / 'four.yaml').write_text(textwrap.indent(pasted.read_text(), '    '))
    problems = [json.loads(muster.run('lint', '-o', 'json', path, code=65).stdout) for path in (pasted, 'four.yaml')]
    said = [[(p['line'], re.sub(r'column \d+', '', p['hint']), p['message']) for p in each] for each in problems]
    assert said[0] == said[1] and len(said[0]) == 12
    assert [p['column'] + 4 for p in problems[0]] == [p['column'] for p in problems[1]]


def with_gpus(count):
    return AZURE_JOB.read_text().replace('#  nvidia.com/gpu: 1', f'  nvidia.com/gpu: {count}')


@row('azure-8')
def test_gpus_that_are_not_there_are_refused_and_may_be_waived(muster):
    (muster.work / 'gpu.yaml').write_text(with_gpus(1000))
    done = muster.run('run', '-f', 'gpu.yaml', '--image', f'{AZURE_IMAGE}=echo', code=None)
    assert 64 <= done.returncode <= 78 and 'GPU' in done.stderr, done.stderr
    assert '--no-gpu' in done.stderr
    muster.run('run', '-f', 'gpu.yaml', '--no-gpu', '--image', f'{AZURE_IMAGE}=echo')


@row('azure-9')
def test_no_cuda_is_a_flag_of_the_script(tmp_path):
    output, = run_by_hand(tmp_path, 1, '--no-cuda', '--images', 64)
    assert LOSS.search(output)


@row('azure-10')
def test_create_answers_as_kubectl_does(created):
    assert created[1] == f'pytorchjob.kubeflow.org/{JOB} created\n'


@row('azure-11')
def test_get_pods_lists_master_and_workers(created):
    lines = [line.split() for line in created[0].run('get', 'pods').stdout.splitlines()]
    assert lines[0] == ['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE']
    assert [line[0] for line in lines[1:]] == PODS
    assert all(re.fullmatch(r'[01]/1', line[1]) and line[3] == '0' and re.fullmatch(r'(\d+[smh])+', line[4]) for line in lines[1:])


@row('azure-12')
def test_get_pytorchjob_shows_state_and_age(finished):
    lines = [line.split() for line in finished.run('get', 'pytorchjob').stdout.splitlines()]
    assert lines[0] == ['NAME', 'STATE', 'AGE']
    assert lines[1][:2] == [JOB, 'Succeeded'] and re.fullmatch(r'(\d+[smh])+', lines[1][2])


@row('azure-13')
def test_describe_has_the_sections_in_their_order(finished):
    text = finished.run('describe', 'pytorchjob', JOB).stdout
    sections = ['Name:', 'Namespace:', 'Labels:', 'Annotations:', 'API Version:', 'Kind:', 'Metadata:', '  Creation Timestamp:',
                '  Generation:', '  Resource Version:', '  UID:', 'Spec:', '  Pytorch Replica Specs:', '    Master:',
                '      Replicas:', '      Restart Policy:', '      Template:', '            Image:', '    Worker:', 'Status:',
                '  Completion Time:', '  Conditions:', 'Created', 'Running', 'Succeeded', '  Replica Statuses:', '    Master:',
                '      Succeeded:', '    Worker:', '  Start Time:', 'Events:']
    at = 0
    for section in sections:
        found = text.find(section, at)
        assert found >= 0, f'{section!r} is missing after {text[:at][-60:]!r} in\n{text}'
        at = found + len(section)
    assert f'PyTorchJob {JOB} is created.' in text
    assert f'PyTorchJob {JOB} is successfully completed.' in text
    events = text[at:]
    for pod in PODS:
        assert re.search(rf'Normal +SuccessfulCreatePod .* Created pod: {pod}$', events, re.M), events
    assert re.search(rf'SuccessfulCreateService .* Created service: {PODS[0]}$', events, re.M), events
    assert re.search(r'Normal +PyTorchJobSucceeded ', events), events


@row('azure-14')
def test_logs_show_the_training(finished):
    lines = finished.run('logs', PODS[0]).stdout.splitlines()
    assert lines[0] == 'Using distributed PyTorch with gloo backend'
    losses = [LOSS.fullmatch(line) for line in lines if line.startswith('Train Epoch: 1')]
    assert len(losses) >= 4 and all(losses), lines
    assert [match.group(1) for match in losses[:2]] == ['0', '2560'] and losses[0].group(2) == '10240'
    assert re.fullmatch(r'accuracy=0\.\d{4}', next(line for line in lines if line.startswith('accuracy')))
    assert not any('Downloading' in line for line in lines)

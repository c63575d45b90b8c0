""".ci/run: which suites run at the same time, and which output of each is shown, in the folder of a project that contains nothing else."""
import os
import shutil
import signal
import subprocess

import pytest

from program import LIMIT_S, SOURCE, wait_for

QUIET = 'echo "1 passed, 0 failed"'
# Each suite waits for the other, and prints two lines.
MEETS = 'touch {0}; echo {0} 1; while [ ! -e {1} ]; do sleep 0.02; done; echo {0} 2; {2}'


class Project:
    def __init__(self, folder):
        self.folder = folder
        (folder / 'tools/kubectl').mkdir(parents=True)
        (folder / 'tools/kubernetes').mkdir()
        (folder / '.ci').mkdir()
        shutil.copy(SOURCE / '.ci/run', folder / '.ci/run')
        for name in ('counted', 'limited'):
            shutil.copy(SOURCE / 'tools' / name, folder / 'tools' / name)
        self.write('tools/kubectl/find', 'echo none')
        self.write('tools/deps', ':')
        (folder / '.ci/skips').write_text('# none\n')

    def write(self, path, script):
        (self.folder / path).write_text(f'#!/bin/sh\n{script}\n')
        (self.folder / path).chmod(0o755)

    def suites(self, **scripts):
        for name, script in scripts.items():
            self.write(os.path.join('.ci', f'suite-{name}'), script)

    def start(self, *suites):
        # The .ci/run under test must not get the variables of the .ci/run that runs this test.
        env = {k: v for k, v in os.environ.items() if k not in ('MUSTER_AGAIN', 'MUSTER_TEST_PATIENCE')}
        return subprocess.Popen([self.folder / '.ci/run', *suites], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def run(self, *suites):
        """Returns the exit code and the lines of output."""
        process = self.start(*suites)
        output, _ = process.communicate(timeout=LIMIT_S)
        return process.returncode, output.splitlines()


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_podman_runs_beside_fuzz_and_each_is_shown_whole_in_its_turn(project):
    project.suites(fuzz=MEETS.format('fuzz', 'podman', 'echo "3 passed, 0 failed"'), heavy='echo heavy; ' + QUIET,
                   podman=MEETS.format('podman', 'fuzz', 'echo "2 passed, 0 failed"'))
    code, lines = project.run('suite-fuzz', 'suite-heavy', 'suite-podman')
    said = [line for line in lines if not line.startswith(('===', 'beside'))]
    assert code == 0 and said == ['fuzz 1', 'fuzz 2', '3 passed, 0 failed', 'heavy', '1 passed, 0 failed',
                                  'podman 1', 'podman 2', '2 passed, 0 failed', '6 passed, 0 failed, 0 skipped']
    assert any(line.startswith('=== suite-podman: 2 passed, 0 failed, 0 skipped, ') for line in lines)


def test_suites_that_wait_run_beside_those_that_compute_and_are_shown_last(project):
    project.suites(tsan=MEETS.format('tsan', 'kubernetes', QUIET), kubernetes=MEETS.format('kubernetes', 'tsan', QUIET),
                   vm=MEETS.format('vm', 'node', QUIET), node=MEETS.format('node', 'vm', QUIET))
    code, lines = project.run('suite-node', 'suite-kubernetes', 'suite-tsan', 'suite-vm')
    said = [line for line in lines if line.endswith((' 1', ' 2'))]
    assert code == 0 and said == [f'{name} {i}' for name in ('tsan', 'vm', 'kubernetes', 'node') for i in (1, 2)]
    assert lines[-1] == '4 passed, 0 failed, 0 skipped'


def test_packages_come_first_and_what_takes_long_is_begun(project):
    """Only the packages of the named suites are installed, and only what these suites use is begun."""
    project.write('tools/deps', 'echo "$@" >>deps')
    project.write('tools/torch2', 'touch torch2')
    project.write('tools/kubernetes/build', 'touch build')
    project.suites(torch2=f'while [ ! -e torch2 ]; do sleep 0.02; done; {QUIET}', vm=QUIET)
    assert project.run('suite-torch2', 'suite-vm')[0] == 0
    assert sorted((project.folder / 'deps').read_text().split()) == ['--if-missing', 'clients', 'vm']
    assert not (project.folder / 'build').exists()


@pytest.mark.parametrize('names', [('suite-podman',), ('suite-fuzz',)])
def test_one_of_them_runs_alone(project, names):
    project.suites(fuzz='echo fuzz; ' + QUIET, podman='echo podman; ' + QUIET)
    code, lines = project.run(*names)
    assert code == 0 and lines[-1] == '1 passed, 0 failed, 0 skipped' and ('podman' in lines) == (names == ('suite-podman',))


def test_a_failure_beside_another_suite_is_a_failure(project):
    project.suites(fuzz='echo; ' + QUIET, podman='echo "FAILED test_x.py::test_it"; echo "flaky: test_x.py::test_other"; echo "4 passed, 1 failed"; exit 1')
    code, lines = project.run('suite-fuzz', 'suite-podman')
    assert code == 1 and lines[-1] == '5 passed, 1 failed, 0 skipped'
    end = lines[lines.index('--- suite-podman, flaky:'):]
    assert '--- suite-podman failed:' in end and end.count('FAILED test_x.py::test_it') == 2


def test_what_dies_without_a_count_beside_another_suite_is_a_failure(project):
    project.suites(fuzz=QUIET, podman='kill -9 $$')
    code, lines = project.run('suite-fuzz', 'suite-podman')
    assert code == 1 and lines[-1] == '1 passed, 1 failed, 0 skipped'


NAP = f'1000.{os.getpid()}'
RUNS = f'setsid sleep {NAP} & trap "" TERM; touch {{0}}; while :; do wait; done'


def is_running(*words):
    listed = subprocess.run(['ps', '-eo', 'args='], stdout=subprocess.PIPE, text=True, check=True).stdout
    return ' '.join(words) in listed.splitlines()


def test_a_signal_to_it_alone_ends_its_suites(project):
    """It also ends a suite that ignores the signal, and one that runs beside another suite."""
    project.suites(fuzz=RUNS.format('fuzzing'), podman=f'touch up; exec sleep {NAP}')
    process = project.start('suite-fuzz', 'suite-podman')
    for name in ('up', 'fuzzing'):
        wait_for((project.folder / name).exists, f'{name}: it runs')
    process.terminate()
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + signal.SIGTERM and not is_running('sleep', NAP)


def test_a_signal_to_make_test_ends_its_suites(project):
    shutil.copy(SOURCE / 'Makefile', project.folder)
    (project.folder / 'build').mkdir()
    (project.folder / 'build/build.ninja').touch()
    project.write('cmake', ':')
    project.write('tools/run-tests', f'setsid sleep {NAP} & touch up; wait')
    env = {**os.environ, 'PATH': f'{project.folder}:{os.environ["PATH"]}'}
    process = subprocess.Popen(['make', 'test'], cwd=project.folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for((project.folder / 'up').exists, 'the suites run')
    process.terminate()
    process.communicate(timeout=LIMIT_S)
    assert process.returncode != 0 and not is_running('sleep', NAP)


def test_ctrl_c_ends_what_runs_beside(project):
    project.suites(fuzz='touch fuzzing; exec sleep 1000.5', podman='trap "touch ended; exit 1" INT; touch up; while :; do sleep 0.1; done')
    process = project.start('suite-fuzz', 'suite-podman')
    for name in ('up', 'fuzzing'):
        wait_for((project.folder / name).exists, f'{name}: it runs')
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=LIMIT_S)
    wait_for((project.folder / 'ended').exists, 'what ran beside has ended')

"""How groups begin and end: exit without destroy, Ctrl-C, the death of a peer, timeouts, stores that are used again."""
import os
import re
import signal
import subprocess
import sys
import tempfile

import pytest
from conftest import HERE, PACKAGE

from ports import held_port
from program import LIMIT_S


def test_exit_without_destroy(python, ranks):
    for code, out, err in ranks(python, 'life.py', 2, 'leave_without_destroy').finish():
        assert (code, out.split()) == (0, ['done']), err


@pytest.fixture
def port():
    with held_port() as number:
        yield number


@pytest.mark.any_torch
def test_tcp_address_as_meeting_place(python, ranks, port):
    for code, out, err in ranks(python, 'life.py', 3, 'meet_at_address', f'tcp://127.0.0.1:{port}').finish():
        assert (code, out.split()) == (0, ['done']), err


@pytest.mark.parametrize('what', [
    'interrupt_all_reduce', *(pytest.param(f'interrupt_{call}', marks=pytest.mark.any_torch) for call in ('wait', 'recv', 'barrier'))])
def test_ctrl_c_ends_a_blocking_call(python, ranks, what):
    group = ranks(python, 'life.py', 2, what)
    group.wait_for_line(0, 'interrupted')


@pytest.mark.any_torch
def test_a_signals_handler_may_call_a_collective(python, ranks):
    for code, out, err in ranks(python, 'life.py', 2, 'call_in_a_handler').finish():
        assert (code, out.split()) == (0, ['done']), err


@pytest.mark.any_torch
def test_a_collective_in_ctrl_cs_handler_is_refused(python, ranks):
    group = ranks(python, 'life.py', 2, 'call_in_ctrl_c')
    assert 'let the handler set a flag' in group.wait_for_line(0, 'error ')


@pytest.mark.parametrize('what, rank', [('interrupt_backward', 0), ('interrupt_forward', 1)])
def test_ctrl_c_ends_a_step_of_ddp(python, ranks, what, rank):
    group = ranks(python, 'life.py', 2, what)
    waiting = group.processes[rank]
    assert 'KeyboardInterrupt' in waiting.communicate(timeout=LIMIT_S)[1]
    assert waiting.returncode == -signal.SIGINT


def test_the_thread_that_completes_calls_begins_with_the_group(python, ranks):
    for code, out, err in ranks(python, 'life.py', 2, 'complete_from_the_beginning').finish():
        assert (code, out.split()) == (0, ['done']), err


@pytest.mark.parametrize('what', ['die_in_backward', 'die_in_a_call_of_the_group', 'die_in_a_functional_collective'])
def test_kill_of_a_peer_is_our_error_in_what_torch_waits_for(python, ranks, what):
    group = ranks(python, 'life.py', 2, what)
    for rank in range(2):
        group.wait_for_line(rank, 'ready')
    group.signal(1)
    assert group.wait_for_line(0, 'error ').startswith('ConnectionError rank=1')


@pytest.mark.any_torch
def test_kill_of_a_peer_is_an_error_that_names_it(python, ranks):
    group = ranks(python, 'life.py', 3, 'die_in_all_reduce')
    for rank in range(3):
        group.wait_for_line(rank, 'ready')
    group.signal(2)
    for rank in (0, 1):
        kind, who, text = group.wait_for_line(rank, 'error ').split(' ', 2)
        assert (kind, who) == ('ConnectionError', 'rank=2'), text


@pytest.mark.parametrize('group', ['kept', 'destroyed'])
def test_who_ends_because_of_another_rank_ends_after_it(python, ranks, group):
    (code, out, err), (other, _, _) = ranks(python, 'life.py', 2, 'end_because_of_another', group).finish()
    assert (code, other) == (1, 3) and 'rank 1 closed' in err
    assert float(re.search('ended (.*)', out)[1]) >= 1


@pytest.mark.any_torch
def test_a_timeout_says_so(python, ranks):
    group = ranks(python, 'life.py', 2, 'time_out')
    assert re.search(r'timed out .* \(the timeout of the group\)', group.wait_for_line(0, 'error '))


def test_a_store_that_is_used_again(python, ranks):
    for code, out, err in ranks(python, 'life.py', 2, 'same_store_again').finish():
        assert (code, out.split()) == (0, ['done']), err


def test_a_group_is_left_while_a_thread_waits(python, ranks):
    group = ranks(python, 'life.py', 2, 'leave_under_a_wait', env={'MALLOC_PERTURB_': '165'})
    for code, out, err in group.finish():
        assert (code, out.split()) == (0, ['done']), err


@pytest.mark.any_torch
def test_a_communicator_is_closed_while_a_thread_asks_for_the_gil(python, ranks):
    for code, out, err in ranks(python, 'life.py', 1, 'close_under_a_question').finish():
        assert (code, out.split()) == (0, ['done']), err


@pytest.mark.any_torch
def test_threads_share_a_group(python, ranks):
    for code, out, err in ranks(python, 'threads.py', 2).finish():
        assert (code, out.strip()) == (0, 'in order'), err


def test_forked_dataloader_workers_write_into_memory_of_their_own(python, ranks):
    for code, out, err in ranks(python, 'loader.py', 2).finish():
        assert (code, out.split()) == (0, ['apart']), err


def test_torchrun_restarts_on_the_same_store(python):
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [python, '-m', 'torch.distributed.run', '--standalone', '--nproc_per_node=2', '--max_restarts=1',
             '--redirects=1', '--tee=1', '--monitor_interval=1',  # Debian's torchrun fails without the first two
             str(HERE / 'workers/life.py'), 'die_once'],
            env={'PATH': '/usr/bin:/bin', 'PYTHONPATH': str(PACKAGE), 'OMP_NUM_THREADS': '1', 'HOME': folder,
                 **{name: os.environ[name] for name in ('LD_PRELOAD', 'ASAN_OPTIONS', 'UBSAN_OPTIONS') if name in os.environ}},
            capture_output=True, text=True, timeout=LIMIT_S)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count('attempt 1 done') == 2


@pytest.mark.any_torch
def test_the_package_alone_loads_nothing():
    """Every python under `muster run` loads the package, so it must load neither torch nor the extension."""
    code = 'import sys, muster; print([m for m in sys.modules if m.startswith(("torch", "muster"))])'
    out = subprocess.run([sys.executable, '-c', code], env={'PYTHONPATH': str(PACKAGE)}, text=True, check=True,
                         capture_output=True).stdout
    assert sorted(eval(out)) == ['muster', 'muster.redirect', 'muster.substitution']


@pytest.mark.any_torch
def test_every_error_of_the_table_can_be_caught_by_name(python):
    """This holds for the exceptions that are more than a RuntimeError; KeyboardInterrupt stays Python's own class."""
    table = (HERE.parent.parent / 'include/muster/err.def').read_text()
    names = set(re.findall(r'^MUSTER_ERROR\(.*, *(\w+Error),', table, re.M)) - {'RuntimeError'}
    assert {'BlockingIOError', 'FileNotFoundError', 'ConnectionError'} < names
    program = ('import builtins, sys, muster\n'
               'for name in sys.argv[1:]:\n'
               '    assert issubclass(getattr(muster, name), (muster.Error, getattr(builtins, name))), name\n'
               'assert not hasattr(muster, "NoSuchError")')
    subprocess.run([python, '-c', program, *sorted(names)], check=True, env={**os.environ, 'PYTHONPATH': str(PACKAGE)})

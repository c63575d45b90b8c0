"""muster logs: exact bytes, the order of ranks, rotation, incomplete lines."""
import hashlib
import os
import pathlib
import re
import signal
import struct
import subprocess

import pytest
from conftest import LIMIT_S, job, python, shell, wait_for

SEGMENTS_BYTES = 5 * (10 << 20)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def output_of(muster, *words):
    """Returns standard output as bytes, and standard error as text."""
    done = subprocess.run([muster.binary, *words], cwd=muster.work, env=muster.env, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.decode()


NASTY = b'\0\xff\xfe no newline \r\n\x1b[31m\xc3(\n\n\r' + b'x' * 200000 + os.urandom(3000000) + b'end \xe2\x82'


@pytest.mark.parametrize('data', [NASTY, b'', b'\0', b'y' * 10000000, b'\n' * 100000], ids=['random', 'empty', 'nul', 'long', 'newlines'])
def test_bytes_come_back_as_they_were_written(muster, data):
    (muster.work / 'data').write_bytes(data)
    output_of(muster, 'run', '-q', '-f', muster.write('job.yaml', job('exact', shell('cat data'))), '--results', 'out')
    printed, _ = output_of(muster, 'logs', 'exact-master-0')
    assert sha(printed) == sha(data)
    followed, _ = output_of(muster, 'logs', '-f', 'exact-master-0')
    assert sha(followed) == sha(data)
    assert sha((muster.work / 'out/logs/exact-master-0.log').read_bytes()) == sha(data)


def rotated_of(text):
    found = re.findall(r"muster: +the first (\S+ MB) of long-master-0's log were rotated away", text)
    assert found, text
    return found[-1]


def test_rotation_says_that_the_beginning_is_gone(muster):
    data = os.urandom(SEGMENTS_BYTES + 19000000)
    (muster.work / 'data').write_bytes(data)
    path = muster.write('job.yaml', job('long', shell('cat data; echo; echo last')))
    _, ran = output_of(muster, 'run', '-q', '-f', path, '--results', 'out')
    data += b'\nlast\n'
    printed, said = output_of(muster, 'logs', 'long-master-0')
    assert data.endswith(printed) and 30000000 < len(printed) < SEGMENTS_BYTES
    gone = rotated_of(said)
    assert gone == f'{(len(data) - len(printed)) / 1e6:.1f} MB'
    assert rotated_of(output_of(muster, 'logs', 'long')[1]) == gone
    assert rotated_of(output_of(muster, 'logs', '--tail', '100000000', 'long-master-0')[1]) == gone
    assert rotated_of(output_of(muster, 'logs', '--tail=-1', 'long-master-0')[1]) == gone  # -1 means all lines, as for kubectl
    tail, said = output_of(muster, 'logs', '--tail', '1', 'long-master-0')
    assert (tail, said) == (b'last\n', '')
    kept = (muster.work / 'out/logs/long-master-0.log').read_bytes()
    assert data.endswith(kept) and kept.endswith(printed)
    assert rotated_of(ran) == f'{(len(data) - len(kept)) / 1e6:.1f} MB'
    described = muster.run('describe', 'pod', 'long-master-0').stdout
    assert re.search(r'Log: +the first [0-9.]+ MB were rotated away', described), described


def kill_controller(muster):
    pid = muster.status()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not pathlib.Path(f'/proc/{pid}').exists(), 'the controller is gone')


def test_bytes_are_exact_over_a_kill_of_the_controller(muster):
    data = os.urandom(4000000)
    (muster.work / 'one').write_bytes(data[:2000000])
    (muster.work / 'two').write_bytes(data[2000000:])
    script = 'cat one; touch half; while [ ! -e go ]; do sleep 0.02; done; cat two'
    muster.run('create', '-f', muster.write('job.yaml', job('half', shell(script))))
    wait_for(lambda: (muster.work / 'half').exists(), 'half is written')
    with open(muster.work / 'got', 'wb') as got:
        follow = muster.start('logs', '-f', 'half-master-0', stdout=got)
        wait_for(lambda: (muster.work / 'got').stat().st_size == 2000000, 'half is printed')
        kill_controller(muster)
        (muster.work / 'go').touch()
        assert follow.wait(timeout=LIMIT_S) == 0, follow.stderr.read()
    assert sha((muster.work / 'got').read_bytes()) == sha(data)


def test_a_merged_log_goes_on_over_a_kill_of_the_controller(muster):
    script = 'for i in $(seq 1 200); do echo $RANK $i; done; touch half$RANK; while [ ! -e go ]; do sleep 0.02; done; echo $RANK 201'
    muster.run('create', '-f', muster.write('job.yaml', job('several', shell(script), workers=2)))
    wait_for(lambda: all((muster.work / f'half{rank}').exists() for rank in range(3)), 'all are half done')
    with open(muster.work / 'got', 'w', encoding='utf-8') as got:
        follow = muster.start('logs', '-f', 'several', stdout=got)
        wait_for(lambda: len((muster.work / 'got').read_text().splitlines()) == 600, 'half is printed')
        kill_controller(muster)
        (muster.work / 'go').touch()
        assert follow.wait(timeout=LIMIT_S) == 0, follow.stderr.read()
    lines = (muster.work / 'got').read_text().splitlines()
    for rank in range(3):
        assert [line for line in lines if line.startswith(f'[rank {rank}]')] == [f'[rank {rank}] {rank} {i}' for i in range(1, 202)]


def test_every_run_of_a_container_is_followed_to_its_last_byte(muster):
    script = 'n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; printf "run %s" $n; [ $n -ge 1 ]'
    muster.run('create', '-f', muster.write('job.yaml', job('again', shell(script), restart='OnFailure')))
    assert output_of(muster, 'logs', '-f', 'again')[0] == b'[rank 0] run 0\n[rank 0] run 1\n'
    assert output_of(muster, 'logs', 'again-master-0')[0] == b'run 1'
    assert output_of(muster, 'logs', '--previous', 'again-master-0')[0] == b'run 0'


# Ranks that print in turn: each waits until the line before is in its log file, so that the time of that line is certainly earlier.
TURNS = ('import os, pathlib, time\n'
         'rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])\n'
         'def said(): return sum(p.read_text().count("turn") for p in pathlib.Path(os.environ["LOGS"]).glob("jobs/*/containers/*/*/0/0.log"))\n'
         'for turn in range(rank, 60, size):\n'
         '    while said() != turn: time.sleep(0.001)\n'
         '    time.sleep(0.002)\n'
         '    print(f"turn {turn}", flush=True)\n')


@pytest.mark.parametrize('words', [[], ['-f']], ids=['now', 'follow'])
def test_ranks_are_merged_by_time(muster, words):
    expected = [f'[rank {turn % 3}] turn {turn}' for turn in range(60)]
    path = muster.write('job.yaml', job('turns', python(TURNS), workers=2, env={'LOGS': str(muster.home)}))
    if words:
        muster.run('create', '-f', path)
        muster.wait_condition('turns', 'Running')
    else:
        muster.run('run', '-q', '-f', path)
    assert output_of(muster, 'logs', *words, 'turns')[0].decode().splitlines() == expected
    stamped = output_of(muster, 'logs', '--timestamps', 'turns')[0].decode().splitlines()
    assert [re.sub(r'\] \S+Z ', '] ', line) for line in stamped] == expected
    times = [line.split()[2] for line in stamped]
    assert [t[:19] for t in times] == sorted(t[:19] for t in times)


def test_a_big_log_and_a_silent_rank_are_merged_with_bounded_memory(muster):
    script = 'if [ $RANK = 0 ]; then yes "a line of a rank that has much to say" | head -c 40000000; else echo only; fi'
    muster.run('run', '-q', '-f', muster.write('job.yaml', job('big', shell(script), workers=2)))
    time = subprocess.run(['sh', '-c', f'ulimit -v 400000; exec {muster.binary} logs big | tail -c 1000000 | wc -c'], cwd=muster.work,
                          env=muster.env, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert time.stdout.strip() == '1000000' and time.stderr == ''


DOTS = ('import pathlib, sys, time\n'
        'for i in range(5): print(".", end="", flush=True)\n'
        'while not pathlib.Path("go").exists(): time.sleep(0.02)\n'
        'print("done", flush=True)\n')


def read_until(stream, wanted):
    """Reads a pipe until these bytes have arrived, and returns what it read; the pipe must not end before."""
    got = b''
    while wanted not in got:
        part = os.read(stream.fileno(), 4096)
        assert part, got
        got += part
    return got


@pytest.mark.parametrize('words', [['run', '-q', '-f', 'dots.yaml'], ['logs', '-f', 'dots'], ['logs', '-f', 'dots-master-0']],
                         ids=['run', 'logs', 'logs-pod'])
def test_a_partial_line_is_seen_before_it_ends(muster, words):
    muster.write('dots.yaml', job('dots', python(DOTS)))
    if words[0] == 'logs':
        muster.run('create', '-f', 'dots.yaml')
        muster.wait_condition('dots', 'Running')
    process = muster.start(*words)
    prefix = b'' if 'dots-master-0' in words else b'[rank 0] '
    assert read_until(process.stdout, b'.....') == prefix + b'.....'
    (muster.work / 'go').touch()
    assert process.communicate(timeout=LIMIT_S)[0] == 'done\n'
    assert process.returncode == 0


STAMPED = ('import sys, time\n'
           'for i in range(12):\n'
           '    time.sleep(0.25)\n'
           '    print(f"{time.time():.3f};", end="", flush=True)\n'
           'print(flush=True)\n')


def test_bytes_without_a_newline_are_in_the_log_when_they_are_written(muster):
    """The times in the log are compared with the times that the program printed. A loaded machine may delay some bytes; a supervisor that waits
    for the newline delays all, the first by three seconds."""
    muster.run('run', '-q', '-f', muster.write('dots.yaml', job('dots', python(STAMPED))))
    folder = next(muster.home.glob('jobs/*/containers/*/*/0'))
    text = (folder / '0.log').read_bytes()
    index = (folder / '0.idx').read_bytes()
    marks = [struct.unpack('<qQ', index[i:i + 16]) for i in range(0, len(index), 16)]
    offset, delays_ms = 0, []
    for word in text.split(b';')[:-1]:
        came_ms = [ms for ms, at in marks if at <= offset][-1]
        delays_ms.append(came_ms - float(word) * 1000)
        offset += len(word) + 1
    assert len(delays_ms) == 12 and min(delays_ms[:8]) < 1000, delays_ms


def test_a_partial_line_that_another_rank_interrupts_is_marked(muster):
    other = python('import pathlib, time\n'
                   'while not pathlib.Path("seen").exists(): time.sleep(0.02)\n'
                   'print("another", flush=True)\n'
                   'while not pathlib.Path("go").exists(): time.sleep(0.02)\n')
    path = muster.write('job.yaml', job('both', python(DOTS), workers=1, worker_command=other))
    process = muster.start('run', '-q', '-f', path)
    assert read_until(process.stdout, b'.....') == b'[rank 0] .....'
    (muster.work / 'seen').touch()
    assert read_until(process.stdout, b'another\n').decode() == '\u2026\n[rank 1] another\n'
    (muster.work / 'go').touch()
    assert process.communicate(timeout=LIMIT_S)[0] == '[rank 0] \u2026done\n'


def test_breaks_of_long_lines_are_marked(muster):
    script = 'head -c 150000 /dev/zero | tr "\\0" "x"; echo; echo short'
    out = muster.run('run', '-q', '-f', muster.write('job.yaml', job('wide', shell(script)))).stdout
    lines = out.splitlines()
    assert lines[-1] == '[rank 0] short'
    assert len(lines) == 4 and all(line.endswith('\u2026') for line in lines[:2])
    assert all(line.startswith('[rank 0] \u2026x') for line in lines[1:3])
    assert out.count('x') == 150000

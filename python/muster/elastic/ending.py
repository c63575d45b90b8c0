"""How a worker leaves a job before its end: the user's code is unwound, so that nothing after its loop runs.

The code after the loop (saving the model, printing the accuracy) is meant for a trained model, and this worker's model
is not completely trained. The exceptions are of class SystemExit, so that no `except Exception` takes them for an error
of the training.
"""
import os
import signal
import sys
import traceback

from muster import _muster

LEFT_BY_SIGTERM = 143  # as in a shell: 128 + SIGTERM
EXPELLED = 138  # 128 + SIGUSR1: restartPolicy ExitCode starts a process with this code again


FAILED = 65  # muster.EFAILED: another start would not help
NOTE = 'muster.elastic: '  # the beginning of each note that is added to an error
_WHY_BYTES = 3500  # the limit for the reason why a job failed
_LINE_MAX = 400  # the limit for the characters of its first line


class Left(SystemExit):
    """This worker has handed its work to the others, because of job.leave() or SIGTERM; or the job was done before this worker joined it."""


_done = set()  # the coordinators whose jobs have ended while this process worked in them


def _where(coordinator):
    return coordinator or os.environ.get('MUSTER_COORDINATOR')


def note_done(coordinator):
    """Called when the job, or a data set of it, is done. coordinator: its address, or None for that of MUSTER_COORDINATOR."""
    _done.add(_where(coordinator))


def came_late(coordinator):
    """Returns an exception for a worker that finds the job already done: Left, because its model is not the trained one; but an error if this process
    itself has worked in the job, because its script is to do more."""
    if _where(coordinator) in _done:
        return RuntimeError('the job is done, and this process has worked in it: a job is done when all data sets that its workers have opened are done. Make each '
                            'Shards before training ends; to train another model, start another job (`muster train`) for it')
    print('muster.elastic: the job was done before this worker had joined it', flush=True)
    return Left(0)


def left_early(info):
    """Warns when the program leaves the loop before all records are trained. The process then ends with code 0, and the other workers train
    the rest; if the last one also ends early, the job fails."""
    done, records = info['records_done'], info['records_all']
    if done < records:
        print(f'muster.elastic: this worker ends, and {records - done} of {records} records are not trained: the others train them, and '
              'without others the job fails. To train less, ask for fewer epochs', file=sys.stderr, flush=True)


def say_unused(version):
    """Warns about a loop that steps its optimizer only after several batches: it loses the gradients of the others, and the models differ if
    workers count differently."""
    print(f'muster.elastic: step {version} is complete, but no optimizer.step() came with its gradient, which is lost. Gradients are accumulated by '
          'micro_batches=: call optimizer.step() after each backward(). This is said once', file=sys.stderr, flush=True)


def say_no_gradient(version):
    """Warns about a loop without backward(): it trains nothing, and would end without an error."""
    print(f'muster.elastic: in step {version} no parameter has got a gradient, of any worker, and the model stays as it is: loss.backward() comes before '
          'optimizer.step(). This is said once', file=sys.stderr, flush=True)


class Expelled(SystemExit):
    """The other workers went on without this one, because it was silent for too long; it may be started again."""


class Failed(SystemExit):
    """The job has failed, and the coordinator has reported this to all workers: the code of another worker raised an error, or records crash
    workers."""


def has_failed(error):
    """Prints the error by which this worker learns that the job has failed, and returns Failed."""
    print(f'muster.elastic: {error}', flush=True)
    return Failed(FAILED)


def add_note(error, note):
    """Adds a note to the error, which is printed below the traceback; before Python 3.11 it is printed above."""
    if hasattr(error, 'add_note'):
        error.add_note(NOTE + note)
    else:
        print(NOTE + note, file=sys.stderr, flush=True)


def _message(error):
    """Returns the error's message in one line. If the error comes from a loader's process, its text contains that traceback, and the message
    is the part after it."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith(NOTE)]
    if any(line.startswith('Original Traceback') for line in lines):
        lines = lines[max(i for i, line in enumerate(lines) if not line[0].isspace()):]
    return ' '.join(' '.join(lines).split()).removeprefix(f'{type(error).__name__}: ')


def _why(error):
    """Returns a line with the error and the end of the traceback, short enough for the coordinator's log."""
    text = ''.join(traceback.format_exception(type(error), error, error.__traceback__)).replace('\0', '?').rstrip()
    lines = [line.strip() for line in text.splitlines()]
    said = [line[len(NOTE):] for line in lines if line.startswith(NOTE)]
    first = ': '.join(filter(None, said[:1] + [type(error).__name__, _message(error)]))
    first = first if len(first) <= _LINE_MAX else first[:_LINE_MAX - 1] + '…'
    rest = text.encode(errors='replace')[-_WHY_BYTES + 1000:].decode(errors='ignore')
    return f'{first}\n{rest}'


def _explain(job, error):
    """Adds a note to BatchNorm's error, which does not say where its batch of one record comes from."""
    if job is None or job.pass_ is None or len(job.pass_.records) != 1 or 'Expected more than 1 value per channel' not in str(error):
        return
    plan, record = job.plan, job.pass_.records[0]
    where = f'each micro-batch has one record (batch_size={plan.batch})' if plan.batch == 1 else \
        f"record {record} is alone in the last micro-batch of its epoch, as {plan.records} records are divided by batch_size={plan.batch}"
    add_note(error, f'{where}, and BatchNorm cannot train on one record: choose another batch_size, or leave a record out (torch.utils.data.Subset)')


def _tell(job, error):
    """Reports the error to the coordinator. Errors that muster itself raised (a refusal, a coordinator that cannot be reached) concern only
    this worker, and are not reported."""
    native = None if job is None or job.finished else job.native
    if native is not None and isinstance(error, Exception) and not isinstance(error, _muster.Error):
        _fail(native, error)


def tell_error(job, error):
    """Ends the job because of an error in the user's code: the next worker would have the same error."""
    _explain(job, error)
    _tell(job, error)


def _handlers():
    """Yields the code objects of the program's signal handlers."""
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        handler = getattr(handler, 'func', handler)  # if it is a functools.partial
        yield getattr(getattr(handler, '__func__', handler), '__code__', None)


def is_by_the_data(error):
    """Whether the data set's own code has called sys.exit(), and not a signal's handler."""
    codes = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
    return not isinstance(error, (Left, Expelled, Failed)) and codes.isdisjoint(_handlers())


def tell_exit(native, error):
    """Ends the job after the data set's code has called sys.exit(), as an error there does; Python prints nothing about it, so this function
    does."""
    traceback.print_exception(type(error), error, error.__traceback__)
    print('muster.elastic: the code of the data set ends this process by SystemExit, and so the job: the next worker would meet it, too',
          file=sys.stderr, flush=True)
    _fail(native, error)


def _fail(native, error):
    try:
        native.fail(_why(error))
    except (_muster.Error, ValueError) as told:
        print(f'muster.elastic: the others do not hear of it: {told}', file=sys.stderr, flush=True)


def tell_of_errors(find):
    """Makes each later error that ends this process end the job. find() returns the job, or None."""
    before = sys.excepthook

    def hook(kind, error, trace):
        _explain(find(), error)  # before the traceback is printed, so that the note is part of it
        before(kind, error, trace)
        sys.stderr.flush()
        _tell(find(), error)
    sys.excepthook = hook

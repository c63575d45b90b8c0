"""How a worker leaves a job before its end: the user's code is unwound, so that nothing after its loop runs.

What stands there (saving the model, printing the accuracy) is meant for a trained model; this worker has half of one.
Both are SystemExit: no `except Exception` takes them for an error of the training.
"""
LEFT_BY_SIGTERM = 143  # as a shell says it: 128 + SIGTERM
EXPELLED = 138  # 128 + SIGUSR1: what restartPolicy ExitCode takes for "start it again"


class Left(SystemExit):
    """This worker has handed its work to the others, as job.leave() or SIGTERM asked for; or the job was done before it came."""


def came_late():
    """Left, for a worker that finds the job done: its model is not the trained one."""
    print('muster.elastic: the job was done before this worker had joined it', flush=True)
    return Left(0)


class Expelled(SystemExit):
    """The others went on without this worker, as it was silent for too long; it may be started again."""

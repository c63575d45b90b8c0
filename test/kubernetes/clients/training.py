"""training.py KUBECONFIG NAMESPACE: a TrainingClient of kubeflow-training. Each line of its input names a method and its arguments, a line of JSON is
the answer. What the SDK prints goes to standard error.
"""
import json
import os
import sys

from kubeflow.training import TrainingClient, models
from kubeflow.training.utils import utils


def train(parameters):
    import os
    print(f'rank {os.environ["RANK"]} of {os.environ["WORLD_SIZE"]} learns at {parameters["rate"]}', flush=True)


class Caller:
    def __init__(self, client):
        self.client = client
        self.seen = []  # the job's last condition at each callback

    def model(self, job):
        return self.client.api_client.deserialize(utils.FakeResponse(job), models.KubeflowOrgV1PyTorchJob)

    def look(self, job):
        conditions = job.status.conditions if job.status else None
        self.seen.append(conditions[-1].type if conditions else None)

    def converted(self, name, value):
        """Returns the argument, converted if JSON cannot express it."""
        if name == 'job':
            return self.model(value)
        if name == 'expected_conditions':
            return set(value)
        return {'train_func': train, 'callback': self.look}.get(name, value)

    def call(self, asked):
        if asked['method'] == 'seen':
            return self.seen
        return getattr(self.client, asked['method'])(*asked['words'], **{k: self.converted(k, v) for k, v in asked['named'].items()})


def main():
    answers = os.fdopen(os.dup(1), 'w')
    sys.stdout = sys.stderr
    caller = Caller(TrainingClient(config_file=sys.argv[1], namespace=sys.argv[2]))
    for line in sys.stdin:
        try:
            answer = {'value': caller.client.api_client.sanitize_for_serialization(caller.call(json.loads(line)))}
        except Exception as failure:  # noqa: BLE001 (the exception is the answer)
            answer = {'error': type(failure).__name__, 'text': str(failure)}
        print(json.dumps(answer), file=answers, flush=True)


main()

"""Constants of ElasticDL that scripts import."""


class TaskType:
    """The task types of ElasticDL's protocol."""
    NONE = 0
    TRAINING = 1
    EVALUATION = 2
    PREDICTION = 3
    WAIT = 4
    TRAIN_END_CALLBACK = 5

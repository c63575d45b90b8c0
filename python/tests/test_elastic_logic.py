"""muster.elastic without a job, on both torches: the state that joining workers get, statistics of normalisation, refusals, and more."""
import pytest


@pytest.fixture(scope='session')
def looks():
    return {}


@pytest.fixture
def look(python, outputs, looks):
    """look(name) returns the result of a check. One process for each torch runs all checks, because the import of torch takes longest."""
    if python not in looks:
        looks[python] = outputs(python, 'elastic_logic.py', 1)[0]
    return looks[python].get


def test_a_joiner_goes_on_as_the_others_with_every_optimizer(look):
    equal = look('joiners')
    assert len(equal) == 24 and all(equal.values()), [name for name, good in equal.items() if not good]


def test_learning_the_state_of_an_optimizer_leaves_no_trace(look):
    kept = look('no_trace')
    assert all(kept.values()), kept


def test_state_is_data_and_never_code(look):
    assert look('codes') == {'equal': True, 'tensors': True, 'own': True,
                             'bad': ['ValueError', 'ValueError', 'RuntimeError', 'ValueError', 'ValueError']}


def test_batch_norm_statistics_are_applied_in_the_order_of_the_micro_batches(look):
    assert look('statistics') == {'close': [True] * 3, 'tracked': 3}


def test_a_model_in_training_can_be_copied_and_saved_whole(look):
    assert look('copies') == {'moved': [1, 1], 'mine': 0, 'names muster': False}


def test_other_buffers_are_those_of_the_last_micro_batch(look):
    assert look('vectors') == {'back': True, 'moved': True}


def test_a_parameter_that_only_an_optimizer_has_is_undone(look):
    assert look('outside') == 1


def test_a_gradient_is_taken_after_the_outermost_backward(look):
    assert look('gradients') == {'seen': [True, True, False], 'present': [True, True, False, False, False, False],
                                 'count': 5 * 7 + 7 + 7 + 7 + 7 * 3 + 3 + 6}


def test_what_cannot_be_trained_is_refused_with_a_sentence(look):
    told = look('refused')
    kinds = {name: error and error[0] for name, error in told.items()}
    assert kinds == {'max_norm': 'NotImplementedError', 'no max_norm': None, 'SyncBatchNorm': 'NotImplementedError', 'FSDP': 'NotImplementedError', 'LBFGS': 'NotImplementedError',
                     'no optimizer': 'TypeError', 'no model': 'TypeError', 'reduction': 'ValueError', 'no loader': 'RuntimeError', 'sampler': 'ValueError',
                     'dropped': 'ValueError', 'none of them': None, 'validation': 'NotImplementedError', 'no option': 'TypeError', 'DataLoader': 'TypeError', 'empty': 'ValueError', 'stateless': 'TypeError'}
    assert 'each record counts once in an epoch' in told['dropped'][1] and 'validation' in told['validation'][1]
    assert 'num_worker' in told['no option'][1] and 'takes a data set' in told['DataLoader'][1]
    assert 'differ from worker to worker' in told['max_norm'][1]
    assert 'order of the micro-batches' in told['SyncBatchNorm'][1] and 'job.loader' in told['no loader'][1]


def test_a_number_that_is_none_or_out_of_range_is_refused(look):
    """The extension would take numbers modulo 2**32: epochs=2**32 would have been no epoch."""
    u32 = 'is a whole number from 0 to 4294967295, not'
    assert look('numbers') == {
        'micro_batches -1': f'micro_batches {u32} -1', 'micro_batches_per_worker 3': "micro_batches_per_worker is a whole number, not '3'",
        'micro_batches 2.0': 'micro_batches is a whole number, not 2.0',
        'checkpoint_steps 4294967296': f'checkpoint_steps {u32} 4294967296', f'peer_ms {2**63}': f'peer_ms is a whole number from 0 to {2**63 - 1}, not {2**63}',
        'batch_size 2.5': 'the number of records in a micro-batch is a whole number, not 2.5', 'epochs 3': "epochs is a whole number, not '3'",
        'epochs 4294967296': 'epochs is a whole number from 1 to 4294967295, not 4294967296',
        'shuffle yes': "shuffle is a whole number, not 'yes'", 'shuffle -1': f'shuffle {u32} -1',
        f'seed {2**70}': f'seed is a whole number from {-2**63} to {2**64 - 1}, not {2**70}', 'seed -1': None, 'shuffle True': None, 'shuffle False': None,
        'shard 4294967296': 'the number of records in a shard is a whole number from 1 to 4294967295, not 4294967296',
        'records 1.0': 'the number of records is a whole number, not 1.0'}


def test_what_is_wrapped_is_what_it_was(look):
    assert look('wrapped') == {'stepped': True, 'epoch': 1, 'averaged': 1, 'is': True, 'type': 'OneCycleLR'}


def test_a_gradient_scaler_changes_once_per_step_and_unscales_in_each_pass(look):
    scaled = look('scaled')
    assert scaled['moved'] == [False, True, False, True]
    assert scaled['scales'] == ([4, 4, 4, 8] if scaled['works'] else [1] * 4)


def test_random_numbers_are_keyed(look):
    assert look('keys') == {'apart': 125, 'digest': True}

"""Checks numbers that a program passes. The extension would not name the argument, and would take a number that is too large modulo 2**32."""
import operator

U32_MAX = 2**32 - 1
I64_MAX = 2**63 - 1


def _number(name, value):
    try:
        return int(operator.index(value.item() if hasattr(value, 'item') else value))  # item: numpy's bool_ is no index
    except TypeError:
        raise TypeError(f'{name} is a whole number, not {value!r}') from None


def whole(name, value, most=U32_MAX, least=0):
    """Returns the argument as an int."""
    number = _number(name, value)
    if not least <= number <= most:
        raise ValueError(f'{name} is a whole number from {least} to {most}, not {number}')
    return number


def of_seed(value):
    """Returns the seed as an unsigned number of 64 bits, from any number that torch.manual_seed accepts."""
    return whole('seed', value, most=2**64 - 1, least=-2**63) % 2**64


def check_plan(records, each, of, epochs):
    """Checks a data set's records, how many of them are in each micro-batch or shard (`of`), and its epochs."""
    names = ('the number of records', f'the number of records in a {of}', 'epochs')
    numbers = [_number(name, value) for name, value in zip(names, (records, each, epochs))]
    if min(numbers) < 1:
        raise ValueError(f'{records} records, {each} of them in a {of}, {epochs} epochs: each must be 1 or more')
    for name, number, most in zip(names, numbers, (I64_MAX, U32_MAX, U32_MAX)):
        whole(name, number, most, least=1)

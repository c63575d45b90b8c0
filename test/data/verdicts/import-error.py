"""A module is missing, on every rank."""
import no_such_module_of_anybody

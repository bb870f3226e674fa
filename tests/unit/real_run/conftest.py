"""The simulated account, as the tests of the rehearsal have it."""

from tests.unit.rehearsal.conftest import aws as aws
from tests.unit.rehearsal.conftest import stack as stack
from tests.unit.rehearsal.conftest import world as world

"""Lines of numpy: calls and operators, all of them native."""

from measure import busy, finish  # first, for its clock

import numpy

VECTOR = numpy.arange(100000.0)
MATRIX = numpy.random.default_rng(1).random((120, 120))
RANDOM = numpy.random.default_rng(2).random(20000)


def native_matrix_product():
    MATRIX @ MATRIX  #: native_matrix_product


def native_vector_operators():
    VECTOR * 2.0 + VECTOR  #: native_vector_operators


def native_sort():
    numpy.sort(RANDOM)  #: native_sort


def native_exp():
    numpy.exp(VECTOR)  #: native_exp


def native_inverse():
    numpy.linalg.inv(MATRIX)  #: native_inverse


for name, function in list(globals().items()):
    if name.startswith("native_"):
        busy(name, 0.3, function)
finish()

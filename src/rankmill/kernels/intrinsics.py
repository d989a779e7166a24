"""CPU instructions that numba offers no function for, each also in plain Python (without JIT)."""

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

ALL_ONES = (1 << 64) - 1
LANES = 16
BYTE_POINTER = ir.IntType(8).as_pointer()


@intrinsic
def fold(context, a, b):
    """Return the upper half of the 128-bit product of two uint64 XOR the lower half."""

    def generate(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(one, wide) for one in arguments))
        upper = builder.lshr(product, ir.Constant(wide, 64))
        return builder.trunc(builder.xor(product, upper), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def count_ones(context, word):
    """Return the number of bits that are set in a uint64."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def first_marked(context, word):
    """Return the first byte in memory, from 0, that has a bit set in a uint64, which is not 0."""

    def generate(context, builder, signature, arguments):
        zeros = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.lshr(zeros, ir.Constant(ir.IntType(64), 3))

    return types.int64(types.uint64), generate


@intrinsic
def equal_among(context, keys, start, key):
    """Return a bit for each of the `LANES` uint64 from keys[start] on that is equal to `key`.

    All of them are compared at once, without a branch. There must be so many.
    """

    def generate(context, builder, signature, arguments):
        lanes = ir.VectorType(ir.IntType(64), LANES)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), lanes.as_pointer())
        some = builder.load(address, align=8)
        nothing, number = ir.Constant(lanes, ir.Undefined), ir.IntType(32)
        one = builder.insert_element(nothing, arguments[2], ir.Constant(number, 0))
        first = ir.Constant(ir.VectorType(number, LANES), [0] * LANES)
        equal = builder.icmp_unsigned("==", some, builder.shuffle_vector(one, nothing, first))
        return builder.zext(builder.bitcast(equal, ir.IntType(LANES)), ir.IntType(64))

    return types.uint64(keys, types.intp, types.uint64), generate


@intrinsic
def prefetch(context, array, index):
    """Load array[index] into the cache ahead of its use; any index is safe."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), BYTE_POINTER)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [BYTE_POINTER, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [BYTE_POINTER], kind)
        # The arguments of llvm.prefetch: 0 for a read, 3 for all levels of cache, 1 for data.
        builder.call(instruction, [address, *(ir.Constant(number, one) for one in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _fold(a, b):
    product = int(a) * int(b)
    return np.uint64((product ^ product >> 64) & ALL_ONES)


def _count_ones(word):
    return np.uint64(int(word).bit_count())


def _first_marked(word):
    return ((int(word) & -int(word)).bit_length() - 1) >> 3


def _equal_among(keys, start, key):
    return np.uint64(sum(1 << i for i in range(LANES) if keys[start + i] == key))


def _prefetch(array, index):
    pass


PLAIN = {
    fold: _fold,
    count_ones: _count_ones,
    first_marked: _first_marked,
    equal_among: _equal_among,
    prefetch: _prefetch,
}
if config.DISABLE_JIT:  # type: ignore[attr-defined]
    fold, count_ones, first_marked, equal_among, prefetch = PLAIN.values()  # type: ignore[assignment]

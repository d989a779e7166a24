"""CPU instructions that numba offers no function for, each also in plain Python (without JIT)."""

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

ALL_ONES = (1 << 64) - 1
BYTE_POINTER = ir.IntType(8).as_pointer()
PLACE = ir.IntType(32)


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
def first_bit(context, word):
    """Return the lowest bit, from 0, that is set in a uint64, which is not 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def bits_within(context, data, position, low, high):
    """Return which of 64 bytes from `position` on are at least `low` and at most `high`.

    Bit i of the uint64 is set for byte `position` + i. All 64 bytes must be in the data.
    """

    def generate(context, builder, signature, arguments):
        byte, count = ir.IntType(8), 64
        many = ir.VectorType(byte, count)

        def each(number):
            first = builder.insert_element(ir.Constant(many, ir.Undefined), number, PLACE(0))
            places = ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
            return builder.shuffle_vector(first, ir.Constant(many, ir.Undefined), places)

        start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(start, [arguments[1]]), many.as_pointer())
        least, most = (builder.trunc(one, byte) for one in arguments[2:])
        above = builder.sub(builder.load(address, align=1), each(least))
        within = builder.icmp_unsigned("<=", above, each(builder.sub(most, least)))
        return builder.bitcast(within, ir.IntType(64))

    return types.uint64(data, types.intp, types.intp, types.intp), generate


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


def _first_bit(word):
    return (int(word) & -int(word)).bit_length() - 1


def _bits_within(data, position, low, high):
    some = data[position : position + 64]
    return np.packbits((some >= low) & (some <= high), bitorder="little").view(np.uint64)[0]


def _prefetch(array, index):
    pass


PLAIN = {
    fold: _fold,
    count_ones: _count_ones,
    first_bit: _first_bit,
    bits_within: _bits_within,
    prefetch: _prefetch,
}
if config.DISABLE_JIT:  # type: ignore[attr-defined]
    fold, count_ones, first_bit, bits_within, prefetch = PLAIN.values()  # type: ignore[assignment]

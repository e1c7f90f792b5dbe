/// The logarithm to base 2 of a positive number, to within 0.01: bands and levels need no more, and C's function may not
/// be called on the media path.
@_noAllocation @_noLocks
func approximateLog2(_ value: Float) -> Float {
    let bits = value.bitPattern
    let exponent = Float(Int(bits >> 23) - 127)
    let mantissa = Float(bitPattern: bits & 0x007F_FFFF | 0x3F80_0000)
    return exponent + (2 - mantissa / 3) * mantissa - 1.659_3
}

/// 2 to the power of a number, to a relative error of 1e-5, within −126…126: C's function may not be called on the media path.
@_noAllocation @_noLocks
private func exponential2(_ value: Float) -> Float {
    let bounded = max(-126, min(126, value))
    // What is positive is rounded down.
    let whole = Int32(bounded + 127)
    let part = bounded + 127 - Float(whole)
    // Taylor's series around the middle of 0…1, which is the root of 2.
    let x = (part - 0.5) * 0.693_147_18
    let series =
        1 + x * (1 + x * (0.5 + x * (0.166_666_67 + x * (0.041_666_668 + x * (0.008_333_334 + x * 0.001_388_889)))))
    return Float(bitPattern: UInt32(whole) << 23) * (series * 1.414_213_6)
}

/// 1 / (1 + e^−x).
@_noAllocation @_noLocks
func sigmoid(_ value: Float) -> Float { 1 / (1 + exponential2(value * -1.442_695)) }

@_noAllocation @_noLocks
func hyperbolicTangent(_ value: Float) -> Float { 2 / (1 + exponential2(value * -2.885_390)) - 1 }

/// The root of what is not negative, to a relative error of 1e-6.
@_noAllocation @_noLocks
func squareRoot(of value: Float) -> Float {
    let bounded = max(1e-30, value)
    // Newton's method for the reciprocal, from a first guess by halving the exponent.
    var reciprocal = Float(bitPattern: 0x5F37_5A86 &- bounded.bitPattern >> 1)
    for _ in 0..<3 { reciprocal *= 1.5 - 0.5 * bounded * reciprocal * reciprocal }
    return bounded * reciprocal
}

/// The logarithm to base 2 of a positive number, to within 0.01: bands and levels need no more, and C's function may not
/// be called on the media path.
@_noAllocation @_noLocks
func approximateLog2(_ value: Float) -> Float {
    let bits = value.bitPattern
    let exponent = Float(Int(bits >> 23) - 127)
    let mantissa = Float(bitPattern: bits & 0x007F_FFFF | 0x3F80_0000)
    return exponent + (2 - mantissa / 3) * mantissa - 1.659_3
}

internal import Glibc

/// A fast Fourier transform of complex numbers whose count is a power of two (iterative, radix 2), in place.
package struct FourierTransform: Sendable {
    package let count: Int
    private let cosines: [Float]
    private let sines: [Float]
    private let reversed: [Int32]

    /// - Parameter minimumCount: The transform's count is the next power of two, and at least 2.
    package init(minimumCount: Int) {
        var bits = 1
        while 1 << bits < minimumCount { bits += 1 }
        let count = 1 << bits
        self.count = count
        let angles = (0..<count / 2).map { -2 * Double.pi * Double($0) / Double(count) }
        cosines = angles.map { Float(cos($0)) }
        sines = angles.map { Float(sin($0)) }
        var reversed = [Int32](repeating: 0, count: count)
        for index in 1..<count {
            reversed[index] = reversed[index / 2] / 2 + (index % 2 == 1 ? Int32(count / 2) : 0)
        }
        self.reversed = reversed
    }

    /// Transforms forwards. Swapping `real` and `imaginary` transforms backwards, scaled by ``count``.
    package func transform(_ real: inout [Float], _ imaginary: inout [Float]) {
        precondition(real.count == count && imaginary.count == count, "the transform has a fixed count")
        for index in 0..<count {
            let other = Int(reversed[index])
            if other > index {
                real.swapAt(index, other)
                imaginary.swapAt(index, other)
            }
        }
        var half = 1
        while half < count {
            stage(half, &real, &imaginary)
            half *= 2
        }
    }

    private func stage(_ half: Int, _ real: inout [Float], _ imaginary: inout [Float]) {
        let stride = count / (2 * half)
        var block = 0
        while block < count {
            for index in 0..<half {
                let low = block + index
                let high = low + half
                let cosine = cosines[index * stride]
                let sine = sines[index * stride]
                let turnedReal = real[high] * cosine - imaginary[high] * sine
                let turnedImaginary = real[high] * sine + imaginary[high] * cosine
                real[high] = real[low] - turnedReal
                imaginary[high] = imaginary[low] - turnedImaginary
                real[low] += turnedReal
                imaginary[low] += turnedImaginary
            }
            block += 2 * half
        }
    }

    /// The cross-correlation of two real signals, with one transform forwards and one backwards.
    ///
    /// - Returns: At index `lag` the sum over `n` of `first[n] · second[n + lag]`; negative lags are at the end, as
    ///   `count + lag`. Correct for every lag by which `second` can be shifted within ``count``.
    package func correlate(_ first: ArraySlice<Float>, _ second: ArraySlice<Float>) -> [Float] {
        var real = [Float](repeating: 0, count: count)
        var imaginary = [Float](repeating: 0, count: count)
        for (index, value) in first.enumerated() where index < count { real[index] = value }
        for (index, value) in second.enumerated() where index < count { imaginary[index] = value }
        transform(&real, &imaginary)

        // The spectra of both are the even and the odd part of what came out; multiply conj(first) by second.
        var productReal = [Float](repeating: 0, count: count)
        var productImaginary = [Float](repeating: 0, count: count)
        for index in 0..<count {
            let mirror = (count - index) % count
            let firstReal = (real[index] + real[mirror]) / 2
            let firstImaginary = (imaginary[index] - imaginary[mirror]) / 2
            let secondReal = (imaginary[index] + imaginary[mirror]) / 2
            let secondImaginary = (real[mirror] - real[index]) / 2
            productReal[index] = firstReal * secondReal + firstImaginary * secondImaginary
            productImaginary[index] = firstReal * secondImaginary - firstImaginary * secondReal
        }
        transform(&productImaginary, &productReal)
        let scale = 1 / Float(count)
        for index in 0..<count { productReal[index] *= scale }
        return productReal
    }
}

/// A fixed number of values in separate memory: allocated once, never moved, freed with its owner.
///
/// It is not copyable, so one thread at a time reaches the memory. Uses in place neither allocate nor lock: elements and spans are
/// inlined into the caller, and what works on many elements is written for `Int16` and `Float`.
@safe @frozen
public struct FixedBuffer<Element: AdditiveArithmetic & BitwiseCopyable>: ~Copyable, @unchecked Sendable {
    // Sendable: only the owner reaches the memory; it may move with its owner to another thread.
    @usableFromInline let base: UnsafeMutablePointer<Element>
    /// Elements it holds.
    public let capacity: Int

    /// Takes memory for `capacity` elements.
    ///
    /// - Parameters:
    ///   - capacity: At least one.
    ///   - zeros: How many at the front are zero; nil: all. The others have no value until they are written, and their pages
    ///     cost nothing until then.
    public init(capacity: Int, zeros: Int? = nil) {
        precondition(capacity > 0, "a buffer holds at least one element")
        self.capacity = capacity
        unsafe base = .allocate(capacity: capacity)
        unsafe base.initialize(repeating: .zero, count: max(0, min(zeros ?? capacity, capacity)))
    }

    @inlinable
    deinit { unsafe base.deallocate() }

    /// The element at an index below ``capacity``.
    public subscript(index: Int) -> Element {
        @inlinable @inline(__always)
        get {
            precondition(index >= 0 && index < capacity, "the buffer has that element")
            return unsafe base[index]
        }
        @inlinable @inline(__always)
        set {
            precondition(index >= 0 && index < capacity, "the buffer has that element")
            unsafe base[index] = newValue
        }
    }
}

/// 16-bit samples.
public typealias SampleBuffer = FixedBuffer<Int16>

/// Numbers to compute in.
public typealias FloatBuffer = FixedBuffer<Float>

// The checker of real-time functions takes the making of a span for an allocation, and unoptimised code's copy of one for
// reference counting. What only does that is not analysed.
extension FixedBuffer where Element == Int16 {
    /// The first `count` samples, to read; at most ``capacity``.
    @_semantics("no_performance_analysis") @inline(__always)
    @_lifetime(borrow self)
    public func samples(_ count: Int) -> Span<Int16> {
        let span = unsafe Span(_unsafeStart: UnsafePointer(base), count: max(0, min(count, capacity)))
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// The first `count` samples, to write; at most ``capacity``.
    @_noAllocation @_noLocks
    @_lifetime(&self)
    public mutating func mutableSamples(_ count: Int) -> MutableSpan<Int16> {
        let span = unsafe MutableSpan(_unsafeStart: base, count: max(0, min(count, capacity)))
        return unsafe _overrideLifetime(span, mutating: &self)
    }

    /// Samples `range`, to read; within ``capacity``.
    @_semantics("no_performance_analysis") @inline(__always)
    @_lifetime(borrow self)
    public func span(_ range: Range<Int>) -> Span<Int16> {
        precondition(isInside(range.lowerBound, range.count), "the range is within the buffer")
        let span = unsafe Span(_unsafeStart: UnsafePointer(base) + range.lowerBound, count: range.count)
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// Samples `range`, to read and write; within ``capacity``.
    @_semantics("no_performance_analysis") @inline(__always)
    @_lifetime(&self)
    public mutating func mutableSpan(_ range: Range<Int>) -> MutableSpan<Int16> {
        precondition(isInside(range.lowerBound, range.count), "the range is within the buffer")
        let span = unsafe MutableSpan(_unsafeStart: base + range.lowerBound, count: range.count)
        return unsafe _overrideLifetime(span, mutating: &self)
    }

    /// Sets `length` samples from `start` on to zero.
    @_semantics("no_performance_analysis") @inline(__always)
    public mutating func clear(_ start: Int, _ length: Int) {
        precondition(isInside(start, length), "the range is within the buffer")
        unsafe (base + start).update(repeating: 0, count: length)
    }

    /// Copies the samples from `start` on to all of `output`.
    @_semantics("no_performance_analysis") @inline(__always)
    public func copy(from start: Int, to output: inout MutableSpan<Int16>) {
        precondition(isInside(start, output.count), "the range is within the buffer")
        unsafe output.withUnsafeMutableBufferPointer { target in
            _ = unsafe target.update(fromContentsOf: UnsafeBufferPointer(start: base + start, count: target.count))
        }
    }

    /// Copies `length` samples from `source` to `target`; the two may overlap.
    @_semantics("no_performance_analysis") @inline(__always)
    public mutating func move(_ length: Int, from source: Int, to target: Int) {
        precondition(isInside(source, length), "the range is within the buffer")
        precondition(isInside(target, length), "the range is within the buffer")
        unsafe (base + target).update(from: base + source, count: length)
    }

    @_noAllocation @_noLocks
    private func isInside(_ start: Int, _ length: Int) -> Bool {
        guard start >= 0, length >= 0 else { return false }
        return start &+ length <= capacity
    }
}

// Loops that the compiler makes vectors of: no result depends on another.
extension FixedBuffer where Element == Float {
    /// Multiplies numbers of this buffer by a matrix of a table, and adds a bias to each of the results.
    ///
    /// It takes four inputs at a time.
    ///
    /// - Parameters:
    ///   - first: The first of the numbers.
    ///   - inputs: How many they are; a multiple of 4.
    ///   - matrix: Where in the table the matrix begins, `outputs` numbers for each input. The biases follow it.
    ///   - start: Where the results are written; not among the inputs.
    @_noAllocation @_noLocks
    public mutating func multiply(
        from first: Int, inputs: Int, by table: SharedTable, at matrix: Int, outputs: Int, into start: Int
    ) {
        let biases = matrix &+ inputs &* outputs
        precondition(
            first >= 0 && inputs >= 0 && inputs % 4 == 0 && first &+ inputs <= capacity, "the inputs are in the buffer")
        precondition(start >= 0 && outputs >= 0 && start &+ outputs <= capacity, "there is room for the results")
        precondition(start &+ outputs <= first || start >= first &+ inputs, "the results are written beside the inputs")
        precondition(matrix >= 0 && biases &+ outputs <= table.count, "the matrix is in the table")
        let sums = unsafe base + start
        for output in 0..<outputs { unsafe sums[output] = table.base[biases &+ output] }
        var index = 0
        while index < inputs {
            let input = unsafe base + (first &+ index)
            let (x0, x1, x2, x3) = unsafe (input[0], input[1], input[2], input[3])
            let row0 = unsafe table.base + (matrix &+ index &* outputs)
            let row1 = unsafe row0 + outputs
            let row2 = unsafe row1 + outputs
            let row3 = unsafe row2 + outputs
            for output in 0..<outputs {
                let added = unsafe x0 * row0[output] + x1 * row1[output] + (x2 * row2[output] + x3 * row3[output])
                unsafe sums[output] += added
            }
            index &+= 4
        }
    }

    /// The sum of the products of numbers of this buffer with as many of another, from its beginning on.
    ///
    /// - Parameters:
    ///   - first: The first of the numbers.
    ///   - count: How many they are; a multiple of 4.
    @_noAllocation @_noLocks
    public func sumOfProducts(from first: Int, count: Int, with other: borrowing FloatBuffer) -> Float {
        precondition(
            first >= 0 && count >= 0 && count % 4 == 0 && first &+ count <= capacity, "the numbers are in the buffer")
        precondition(count <= other.capacity, "the other buffer has as many")
        let one = unsafe UnsafeRawPointer(base + first)
        let two = unsafe UnsafeRawPointer(other.base)
        // Four sums, so that additions do not wait for each other.
        var sums = SIMD4<Float>.zero
        var offset = 0
        while offset < count &* 4 {
            sums +=
                unsafe one.loadUnaligned(fromByteOffset: offset, as: SIMD4<Float>.self)
                * two.loadUnaligned(fromByteOffset: offset, as: SIMD4<Float>.self)
            offset &+= 16
        }
        return sums.sum()
    }

    /// One stage of a Fourier transform, of which this buffer has the real parts: joins each value with that `half` places behind it.
    ///
    /// - Parameters:
    ///   - imaginary: The imaginary parts, as many.
    ///   - half: The values of a group are twice as many; the capacity is a multiple of that.
    ///   - table: Has `half` cosines from `place` on, and behind them as many sines.
    @_noAllocation @_noLocks
    public mutating func join(
        imaginary: inout FloatBuffer, half: Int, by table: SharedTable, at place: Int
    ) {
        precondition(half > 0 && capacity % (2 &* half) == 0, "the buffer consists of whole groups")
        precondition(imaginary.capacity == capacity, "each value has two parts")
        precondition(place >= 0 && place &+ 2 &* half <= table.count, "the factors are in the table")
        let cosines = unsafe table.base + place
        let sines = unsafe cosines + half
        var start = 0
        while start < capacity {
            let (lowReal, lowImaginary) = unsafe (base + start, imaginary.base + start)
            let (highReal, highImaginary) = unsafe (lowReal + half, lowImaginary + half)
            for index in 0..<half {
                let (cosine, sine) = unsafe (cosines[index], sines[index])
                let r = unsafe highReal[index] * cosine - highImaginary[index] * sine
                let i = unsafe highReal[index] * sine + highImaginary[index] * cosine
                unsafe highReal[index] = lowReal[index] - r
                unsafe highImaginary[index] = lowImaginary[index] - i
                unsafe lowReal[index] += r
                unsafe lowImaginary[index] += i
            }
            start &+= half &* 2
        }
    }

    /// Writes the samples from `first` to `end`, times a factor, from `start` on. Behind the last that there is they count as zero.
    @_noAllocation @_noLocks
    public mutating func set(
        _ samples: Span<Int16>, from first: Int, to end: Int, times factor: Float, at start: Int
    ) {
        precondition(first >= 0 && end >= first, "the range is one")
        precondition(start >= 0 && start &+ (end &- first) <= capacity, "there is room for the numbers")
        let target = unsafe base + (start &- first)
        let there = max(first, min(end, samples.count))
        for index in first..<there { unsafe target[index] = Float(samples[unchecked: index]) * factor }
        for index in there..<end { unsafe target[index] = 0 }
    }

    /// The same of samples of which those behind the first `there` count as zero.
    @_noAllocation @_noLocks
    public mutating func set(
        _ samples: borrowing MutableSpan<Int16>, there: Int, from first: Int, to end: Int, times factor: Float,
        at start: Int
    ) {
        precondition(first >= 0 && end >= first, "the range is one")
        precondition(start >= 0 && start &+ (end &- first) <= capacity, "there is room for the numbers")
        let target = unsafe base + (start &- first)
        let there = max(first, min(end, min(there, samples.count)))
        for index in first..<there { unsafe target[index] = Float(samples[unchecked: index]) * factor }
        for index in there..<end { unsafe target[index] = 0 }
    }

    /// Multiplies all numbers by a factor.
    @_noAllocation @_noLocks
    public mutating func scale(by factor: Float) {
        var index = 0
        while index < capacity {
            unsafe base[index] *= factor
            index &+= 1
        }
    }

    /// Adds as many of another's numbers as there are here, those from `start` on, each multiplied by a factor.
    @_noAllocation @_noLocks
    public mutating func add(_ other: borrowing FloatBuffer, from start: Int, times factor: Float) {
        precondition(start >= 0 && start <= other.capacity - capacity, "the numbers are in the other buffer")
        let source = unsafe other.base + start
        var index = 0
        while index < capacity {
            unsafe base[index] += factor * source[index]
            index &+= 1
        }
    }

    /// Moves `count` numbers from `places` on to the front.
    @_noAllocation @_noLocks
    public mutating func shift(by places: Int, keeping count: Int) {
        precondition(places >= 0 && count >= 0 && places &+ count <= capacity, "the buffer has those numbers")
        for index in 0..<count { unsafe base[index] = base[places &+ index] }
    }

    /// Moves all except the first `places` that far to the front; the last ones must then be rewritten.
    @_noAllocation @_noLocks
    public mutating func shift(by places: Int) {
        precondition(places >= 0 && places <= capacity, "no further than the buffer is long")
        var index = places
        while index < capacity {
            unsafe base[index &- places] = base[index]
            index &+= 1
        }
    }
}

/// Numbers that are computed once and only read from then on, by any thread. Their memory is never freed, so a real-time thread
/// keeps and copies the table without counting references.
@safe
public struct SharedTable: BitwiseCopyable, @unchecked Sendable {
    // Sendable: no thread writes the memory after `init`.
    fileprivate let base: UnsafePointer<Float>
    /// How many they are.
    public let count: Int

    /// Takes memory for these numbers, for the rest of the process.
    public init(_ numbers: [Float]) {
        precondition(!numbers.isEmpty, "a table holds at least one number")
        count = numbers.count
        let memory = UnsafeMutablePointer<Float>.allocate(capacity: numbers.count)
        for index in numbers.indices { unsafe (memory + index).initialize(to: numbers[index]) }
        unsafe base = UnsafePointer(memory)
    }

    /// The number at an index below ``count``.
    public subscript(index: Int) -> Float {
        @_noAllocation @_noLocks get {
            precondition(index >= 0 && index < count, "the table has that number")
            return unsafe base[index]
        }
    }
}

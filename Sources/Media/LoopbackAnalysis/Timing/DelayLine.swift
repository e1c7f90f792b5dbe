/// Delay as a straight line over captured samples: a clock that is off by some ppm.
struct DelayLine: Equatable, Sendable {
    /// Delay at ``origin``, in samples.
    var delay: Double
    /// Growth for each captured sample.
    var rate: Double
    /// Number of a captured sample.
    var origin: Double
    /// Readings that went into it since it was last begun.
    var age = 0

    func delay(at position: Double) -> Double { delay + rate * (position - origin) }

    /// Where the played sample `number` is captured: m with m − delay(m) = number.
    func place(of number: Int) -> Double { (Double(number) + delay - rate * origin) / (1 - rate) }

    /// Takes the reading that at `position` the delay is `error` more than this line says.
    ///
    /// A line of least squares through all readings while there are few, and through the last ones from then on.
    mutating func correct(error: Double, at position: Double, spacing: Double) {
        age = min(age + 1, Self.memory)
        let count = Double(age)
        let alpha = 2 * (2 * count - 1) / (count * (count + 1))
        let beta = age == 1 ? 0 : 6 / (count * (count + 1))
        delay = delay(at: position) + alpha * error
        origin = position
        rate += beta * error / spacing
    }

    /// Readings over which the line forgets.
    private static let memory = 60
}

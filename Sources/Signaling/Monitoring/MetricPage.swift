// Monitoring: how a process is doing, for programs that watch it: metrics in Prometheus' text format and health, over HTTP.

/// A metric: its name, what it counts, and by which labels.
///
/// The values of labels come from small, fixed sets, such as the reasons for a call's end, or from the configuration. They are never a
/// user, an address or a call: each combination of values is a series that the watching program keeps for months.
package struct Metric: Hashable, Sendable {
    /// How its values behave.
    package enum Kind: String, Sendable {
        /// It only increases, from 0 at the start of the process.
        case counter
        /// It goes up and down.
        case gauge
        /// Observations, counted by their size.
        case histogram
    }

    /// With its unit, by Prometheus' rules: seconds, bytes, a ratio, and `_total` for a counter.
    package let name: String
    package let kind: Kind
    /// Its meaning, in a sentence without a full stop.
    package let help: String
    /// The names of its labels.
    package let labels: [String]

    package init(_ name: String, _ kind: Kind, _ help: String, by labels: [String] = []) {
        self.name = name
        self.kind = kind
        self.help = help
        self.labels = labels
    }
}

/// Observations of one kind, counted by their size: a Prometheus histogram.
package struct MetricHistogram: Sendable {
    /// The largest observation of each bucket, ascending; a last bucket has all above.
    package let bounds: [Double]
    private var counts: [Int]
    package private(set) var sum = 0.0

    package init(bounds: [Double]) {
        self.bounds = bounds
        counts = [Int](repeating: 0, count: bounds.count + 1)
    }

    /// How many observations there are.
    package var count: Int { counts.reduce(0, +) }

    /// Counts an observation. What is no number is left out.
    package mutating func observe(_ value: Double) {
        guard !value.isNaN else { return }
        counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
        sum += value
    }

    /// The buckets as Prometheus has them: with each bound the observations up to it, and with +Inf all.
    var cumulative: [(bound: Double, count: Int)] {
        var total = 0
        return zip(bounds + [.infinity], counts).map { bound, count in
            total += count
            return (bound, total)
        }
    }
}

/// A page of metrics in the text format of Prometheus, version 0.0.4.
package struct MetricPage: Sendable {
    /// The media type of ``text``.
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private var order: [Metric] = []
    private var samples: [Metric: [String]] = [:]

    package init() {}

    /// The metrics that it has samples of, in the order in which they came.
    package var metrics: [Metric] { order }

    /// Adds a sample.
    ///
    /// - Parameter values: Those of the metric's labels, in their order.
    package mutating func add(_ metric: Metric, _ value: Double, _ values: [String] = []) {
        add(line(metric.name, labels(metric, values), value), to: metric)
    }

    /// Adds a sample that is a whole number.
    package mutating func add(_ metric: Metric, _ value: Int, _ values: [String] = []) {
        add(metric, Double(value), values)
    }

    /// Adds the samples of a histogram.
    package mutating func add(_ metric: Metric, _ histogram: MetricHistogram, _ values: [String] = []) {
        let own = labels(metric, values)
        for (bound, count) in histogram.cumulative {
            add(line(metric.name + "_bucket", own + [("le", Self.text(bound))], Double(count)), to: metric)
        }
        add(line(metric.name + "_sum", own, histogram.sum), to: metric)
        add(line(metric.name + "_count", own, Double(histogram.count)), to: metric)
    }

    /// The page. All samples of a metric are together, below its help and its kind.
    package var text: String {
        order.map { metric in
            "# HELP \(metric.name) \(Self.escaped(metric.help, quote: false))\n# TYPE \(metric.name) \(metric.kind.rawValue)\n"
                + (samples[metric] ?? []).joined()
        }.joined()
    }

    private mutating func add(_ line: String, to metric: Metric) {
        if samples[metric] == nil { order.append(metric) }
        samples[metric, default: []].append(line)
    }

    private func labels(_ metric: Metric, _ values: [String]) -> [(String, String)] {
        Array(zip(metric.labels, values))
    }

    private func line(_ name: String, _ labels: [(String, String)], _ value: Double) -> String {
        let list = labels.map { "\($0)=\"\(Self.escaped($1, quote: true))\"" }.joined(separator: ",")
        return name + (list.isEmpty ? "" : "{\(list)}") + " \(Self.text(value))\n"
    }

    /// A number as the format has it; whole ones without a point, as far as a `Double` has them exactly.
    private static func text(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if value == value.rounded(), value.magnitude < 0x1p53 { return "\(Int64(value))" }
        return "\(value)"
    }

    private static func escaped(_ text: String, quote: Bool) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quote: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

internal import Glibc

/// A plot as inline SVG: axes with round numbers, lines, bands, bars and marks; colours come from the page's style sheet.
struct Plot {
    /// An axis, and how its values become places.
    struct Axis {
        var range: ClosedRange<Double>
        var label: String
        var isLogarithmic = false
        var ticks: [(value: Double, text: String)]

        /// An axis with about `count` round numbers on it.
        static func linear(_ range: ClosedRange<Double>, _ label: String, count: Int = 5) -> Axis {
            let span = max(range.upperBound - range.lowerBound, 1e-9)
            let rough = span / Double(count)
            let power = pow(10, floor(log10(rough)))
            let step = [1, 2, 2.5, 5, 10].map { $0 * power }.first { $0 >= rough * 0.999 } ?? rough
            let first = (range.lowerBound / step - 1e-6).rounded(.up)
            let last = (range.upperBound / step + 1e-6).rounded(.down)
            let places = max(0, Int((-log10(step) + 0.999).rounded(.down)) + (step / power == 2.5 ? 1 : 0))
            let ticks = stride(from: first, through: last, by: 1).map {
                (value: $0 * step, text: AudioText.fixed($0 * step, min(6, places)))
            }
            return Axis(range: range, label: label, ticks: ticks)
        }

        /// Frequencies from 20 Hz to 20 kHz.
        static var frequency: Axis {
            let ticks = [20.0, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000]
            return Axis(
                range: 20...20_000, label: "Frequency", isLogarithmic: true,
                ticks: ticks.map { ($0, $0 >= 1_000 ? "\(Int($0 / 1_000)) k" : "\(Int($0))") })
        }

        func share(_ value: Double) -> Double {
            guard isLogarithmic else {
                return (value - range.lowerBound) / max(1e-12, range.upperBound - range.lowerBound)
            }
            return log(max(1e-9, value) / range.lowerBound) / log(range.upperBound / range.lowerBound)
        }
    }

    /// How much of the page's width it takes; text has the same size in both.
    enum Size: Double {
        case whole = 1_040
        case half = 500
    }

    private static let height = 270.0
    private let width: Double
    private static let left = 66.0
    private static let right = 16.0
    private static let top = 14.0
    private static let bottom = 44.0

    let title: String
    let summary: String
    let horizontal: Axis
    let vertical: Axis
    private var layers: [String] = []

    init(_ title: String, summary: String, _ horizontal: Axis, _ vertical: Axis, _ size: Size = .half) {
        width = size.rawValue
        (self.title, self.summary, self.horizontal, self.vertical) = (title, summary, horizontal, vertical)
    }

    private func x(_ value: Double) -> Double {
        Self.left + max(0, min(1, horizontal.share(value))) * (width - Self.left - Self.right)
    }

    private func y(_ value: Double) -> Double {
        Self.height - Self.bottom - max(0, min(1, vertical.share(value))) * (Self.height - Self.top - Self.bottom)
    }

    /// One decimal place is a tenth of a pixel.
    private static func place(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }

    private func points(_ values: [(Double, Double)]) -> String {
        values.map { "\(Self.place(x($0.0))),\(Self.place(y($0.1)))" }.joined(separator: " ")
    }

    /// A line through these points.
    mutating func line(_ values: [(Double, Double)], style: String = "line") {
        guard values.count > 1 else { return }
        layers.append("<polyline class=\"\(style)\" points=\"\(points(values))\"/>")
    }

    /// A band between two lines: position, least, greatest.
    mutating func band(_ values: [(Double, Double, Double)], style: String = "band") {
        guard values.count > 1 else { return }
        let outline = values.map { ($0.0, $0.2) } + values.reversed().map { ($0.0, $0.1) }
        layers.append("<polygon class=\"\(style)\" points=\"\(points(outline))\"/>")
    }

    /// A range of the horizontal axis, in the background.
    mutating func region(_ range: ClosedRange<Double>, _ label: String) {
        let (from, to) = (x(range.lowerBound), x(range.upperBound))
        layers.append(
            "<rect class=\"region\" x=\"\(Self.place(from))\" y=\"\(Self.place(Self.top))\" "
                + "width=\"\(Self.place(to - from))\" height=\"\(Self.place(Self.height - Self.top - Self.bottom))\"/>"
                + "<text class=\"tick\" x=\"\(Self.place((from + to) / 2))\" y=\"\(Self.place(Self.top + 13))\" "
                + "text-anchor=\"middle\">\(HTMLText.escaped(label))</text>")
    }

    /// Marks on the horizontal axis, over the whole height.
    mutating func marks(_ places: [(Double, String)]) {
        for (value, note) in places {
            let place = Self.place(x(value))
            layers.append(
                "<g class=\"mark\"><title>\(HTMLText.escaped(note))</title><line x1=\"\(place)\" x2=\"\(place)\" "
                    + "y1=\"\(Self.place(Self.top))\" y2=\"\(Self.place(Self.height - Self.bottom))\"/>"
                    + "<circle cx=\"\(place)\" cy=\"\(Self.place(Self.top + 4))\" r=\"4\"/></g>")
        }
    }

    /// A line at one height.
    mutating func limit(_ value: Double, _ label: String) {
        let place = Self.place(y(value))
        layers.append(
            "<line class=\"limit\" x1=\"\(Self.place(Self.left))\" x2=\"\(Self.place(width - Self.right))\" "
                + "y1=\"\(place)\" y2=\"\(place)\"/><text class=\"tick limit-label\" text-anchor=\"end\" "
                + "x=\"\(Self.place(width - Self.right - 4))\" y=\"\(Self.place(y(value) - 5))\">"
                + "\(HTMLText.escaped(label))</text>")
    }

    /// Bars from the bottom up, centred on their places, with a number on each that is not 0.
    mutating func bars(_ values: [(Double, Double, String)], width share: Double, style: String = "bar") {
        for (place, value, text) in values where value > vertical.range.lowerBound {
            let (from, to) = (x(place - share / 2), x(place + share / 2))
            layers.append(
                "<rect class=\"\(style)\" rx=\"3\" x=\"\(Self.place(from))\" y=\"\(Self.place(y(value)))\" "
                    + "width=\"\(Self.place(to - from))\" height=\"\(Self.place(y(vertical.range.lowerBound) - y(value)))\"/>"
                    + "<text class=\"value\" text-anchor=\"middle\" x=\"\(Self.place((from + to) / 2))\" "
                    + "y=\"\(Self.place(y(value) - 5))\">\(HTMLText.escaped(text))</text>")
        }
    }

    /// The plot as an element.
    var svg: String {
        let identifier = "plot-" + title.lowercased().filter { $0.isASCII && $0.isLetter }
        var parts = [
            "<svg\(width > 600 ? " class=\"wide\"" : "") viewBox=\"0 0 \(Int(width)) \(Int(Self.height))\" role=\"img\" "
                + "aria-labelledby=\"\(identifier)-t \(identifier)-d\"><title id=\"\(identifier)-t\">"
                + "\(HTMLText.escaped(title))</title><desc id=\"\(identifier)-d\">\(HTMLText.escaped(summary))</desc>"
        ]
        for tick in vertical.ticks {
            let place = Self.place(y(tick.value))
            parts.append(
                "<line class=\"grid\" x1=\"\(Self.place(Self.left))\" x2=\"\(Self.place(width - Self.right))\" "
                    + "y1=\"\(place)\" y2=\"\(place)\"/><text class=\"tick\" text-anchor=\"end\" "
                    + "x=\"\(Self.place(Self.left - 8))\" y=\"\(Self.place(y(tick.value) + 4))\">\(tick.text)</text>")
        }
        for tick in horizontal.ticks {
            let place = Self.place(x(tick.value))
            parts.append(
                "<line class=\"grid faint\" x1=\"\(place)\" x2=\"\(place)\" y1=\"\(Self.place(Self.top))\" "
                    + "y2=\"\(Self.place(Self.height - Self.bottom))\"/><text class=\"tick\" text-anchor=\"middle\" "
                    + "x=\"\(place)\" y=\"\(Self.place(Self.height - Self.bottom + 17))\">\(tick.text)</text>")
        }
        let middle = Self.place((Self.left + width - Self.right) / 2)
        let centre = Self.place((Self.top + Self.height - Self.bottom) / 2)
        parts += layers
        parts.append(
            "<text class=\"axis\" text-anchor=\"middle\" x=\"\(middle)\" y=\"\(Self.place(Self.height - 6))\">"
                + "\(HTMLText.escaped(horizontal.label))</text><text class=\"axis\" text-anchor=\"middle\" "
                + "transform=\"translate(10 \(centre)) rotate(-90)\">\(HTMLText.escaped(vertical.label))</text></svg>")
        return parts.joined(separator: "\n")
    }
}

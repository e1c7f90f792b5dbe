internal import AudioKit
internal import Glibc

/// Numbers as people read them.
enum AudioText {
    /// Samples as milliseconds.
    static func milliseconds(_ samples: Double) -> Double { samples * 1_000 / Double(AudioFormat.sampleRate) }

    /// A number with as many places as its size asks for, and its unit.
    static func number(_ value: Double, _ unit: String = "") -> String {
        guard value.isFinite else { return "–" }
        // Less than the places below can show is nothing.
        let size = abs(value) < 0.00005 ? 0 : abs(value)
        let places = size == size.rounded() ? 0 : size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.095 ? 2 : 4
        let text = fixed(value, places)
        return unit.isEmpty ? text : text + "\u{202F}" + unit
    }

    /// A number with that many places at most, and none if it is whole.
    static func number(_ value: Double, places: Int) -> String { fixed(value, value == value.rounded() ? 0 : places) }

    /// A number with that many places and a true minus sign.
    static func fixed(_ value: Double, _ places: Int) -> String {
        var factor = 1.0
        for _ in 0..<places { factor *= 10 }
        let scaled = (abs(value) * factor).rounded()
        guard scaled < 1e15 else { return "–" }
        let digits = String(Int64(scaled))
        let padded = String(repeating: "0", count: max(0, places + 1 - digits.count)) + digits
        let text = places == 0 ? padded : padded.dropLast(places) + "." + padded.suffix(places)
        return (value < 0 && scaled > 0 ? "−" : "") + text
    }

    /// Seconds as a time: 12.3 s, 4:05, 3:00:00.
    static func time(_ seconds: Double) -> String {
        guard seconds >= 60 else { return number(seconds, "s") }
        let whole = Int(seconds)
        let rest = (whole % 60 < 10 ? "0" : "") + String(whole % 60)
        guard whole >= 3_600 else { return "\(whole / 60):\(rest)" }
        let minutes = whole / 60 % 60
        return "\(whole / 3_600):\(minutes < 10 ? "0" : "")\(minutes):\(rest)"
    }

    /// A frequency.
    ///
    /// - Parameter isExact: Whether it is given to the hertz.
    static func frequency(_ hertz: Double, isExact: Bool = false) -> String {
        isExact
            ? "\(Int(hertz.rounded()))\u{202F}Hz"
            : hertz >= 1_000 ? number(hertz / 1_000, "kHz") : number(hertz.rounded(), "Hz")
    }
}

internal import AudioKit
internal import LoopbackAnalysis

extension LoopbackRun {
    /// A time after which something happens again and again in a card or a call.
    public struct Period: Equatable, Sendable {
        /// What it is, such as "a period's boundary of the capturing card".
        public let name: String
        /// Its length in frames of its own rate.
        public let frames: Int
        /// That rate, in frames a second.
        public let rate: Int

        /// Names a period.
        public init(_ name: String, frames: Int, rate: Int) {
            (self.name, self.frames, self.rate) = (name, frames, rate)
        }

        /// Its length at 48 kHz.
        var samples: Double { Double(frames) * Double(AudioFormat.sampleRate) / Double(rate) }
    }

    /// Gaps and repeats that recur, and what has their period: "every 1,024 frames (21.33 ms): a period's boundary"; nil if
    /// they do not recur.
    public var recurrenceText: String? {
        guard let recurrence else { return nil }
        let length = AudioText.number(AudioText.milliseconds(recurrence.periodSamples), "ms")
        let count = "\(recurrence.events) of \(measurement.timing.events.count)"
        guard let (period, times) = cause(of: recurrence) else {
            let frames = Self.grouped(Int(recurrence.periodSamples.rounded()))
            return
                "every \(frames) samples (\(length)), \(count): neither a period nor a buffer of the card has this length"
        }
        let frames = Self.grouped(period.frames * times)
        return "every \(frames) frames (\(length)), \(count): " + (times == 1 ? "" : "every \(times) times ")
            + period.name
    }

    var recurrence: Recurrence? { Recurrence(measurement.timing.events) }

    /// The known period that a recurrence is, or is a few of.
    func cause(of recurrence: Recurrence) -> (Period, times: Int)? {
        for times in 1...4 {
            for period in periods {
                let samples = period.samples * Double(times)
                // Clocks differ by at most a thousandth.
                if abs(recurrence.periodSamples - samples) <= max(2, samples * 1e-3) { return (period, times) }
            }
        }
        return nil
    }

    /// 1,024 for 1024.
    private static func grouped(_ number: Int) -> String {
        let digits = Array(String(number))
        return String(
            digits.indices.flatMap { index in
                index > 0 && (digits.count - index) % 3 == 0 ? [",", digits[index]] : [digits[index]]
            })
    }
}

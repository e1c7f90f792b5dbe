import Foundation

/// Brings 48 kHz sound to the 16 kHz that wideband PESQ takes, and writes it as WAV.
enum WideBand {
    /// A windowed-sinc low-pass at 7.6 kHz, 8 ms long.
    private static let taps: [Double] = {
        let half = 191
        let cutoff = 7_600.0 / 48_000.0
        return (-half...half).map { index in
            let x = Double(index)
            let sinc = index == 0 ? 2 * cutoff : sin(2 * .pi * cutoff * x) / (.pi * x)
            return sinc * (0.5 + 0.5 * cos(.pi * x / Double(half + 1)))
        }
    }()

    static func downsample(_ samples: [Int16]) -> [Int16] {
        let half = taps.count / 2
        return stride(from: 0, to: samples.count - 2, by: 3).map { center in
            var sum = 0.0
            let lowest = max(center - half, 0)
            let highest = min(center + half, samples.count - 1)
            for index in lowest...highest { sum += taps[index - center + half] * Double(samples[index]) }
            return Int16(min(max(sum.rounded(), -32_768), 32_767))
        }
    }

    static func write(_ samples: [Int16], to path: String) throws {
        let narrow = downsample(samples)
        var bytes: [UInt8] = []
        func number(_ value: Int, _ width: Int) {
            for index in 0..<width { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
        }
        let size = narrow.count * 2
        bytes += "RIFF".utf8
        number(36 + size, 4)
        bytes += "WAVEfmt ".utf8
        for (value, width) in [(16, 4), (1, 2), (1, 2), (16_000, 4), (32_000, 4), (2, 2), (16, 2)] {
            number(value, width)
        }
        bytes += "data".utf8
        number(size, 4)
        for sample in narrow { number(Int(sample), 2) }
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }
}

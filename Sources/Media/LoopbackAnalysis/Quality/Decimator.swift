internal import AudioKit
internal import Glibc

/// 48 kHz to 16 kHz, and 16 kHz to 8 kHz, each through a low pass of finite length; without delay.
struct Decimator {
    private let taps: [Float]
    private let factor: Int

    /// - Parameters:
    ///   - factor: Number of samples that become one.
    ///   - tapCount: Odd.
    init(factor: Int, tapCount: Int) {
        self.factor = factor
        let middle = Double(tapCount / 2)
        // The band ends where 93 % of what the new rate can have are reached.
        let edge = 0.93 / Double(factor)
        let raw = (0..<tapCount).map { tap -> Double in
            let time = Double(tap) - middle
            let sinc = time == 0 ? edge : sin(Double.pi * edge * time) / (Double.pi * time)
            return sinc * (0.5 + 0.5 * cos(Double.pi * time / (middle + 1)))
        }
        let sum = raw.reduce(0, +)
        taps = raw.map { Float($0 / sum) }
    }

    func decimate(_ samples: [Float]) -> [Float] {
        let middle = taps.count / 2
        var made = [Float](repeating: 0, count: samples.count / factor)
        let padding = [Float](repeating: 0, count: middle)
        let padded = padding + samples + padding
        var index = 0
        while index < made.count {
            made[index] = dotProduct(padded, index * factor, taps, 0, taps.count)
            index += 1
        }
        return made
    }
}

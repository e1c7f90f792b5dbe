internal import ArgumentParser
internal import LoopbackAnalysis

/// The tones of a test signal.
struct LoopbackToneOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            Frequencies of the tones in Hz, 20…20000, such as 997,6000: 16 at the most, of which the first lasts longest. \
            Without it 997, 97, 313, 3163 and 9973.
            """, valueName: "hz,…"))
    var tones: String?

    /// What is played.
    var frequencies: [Double] { tones.flatMap(Self.frequencies) ?? LoopbackSignal.usualTonesHz }

    func validate() throws {
        guard let tones, Self.frequencies(tones) == nil else { return }
        throw ValidationError(
            "--tones must be frequencies of 20…20000 Hz with commas between them, no two alike and 16 at the most, such as "
                + "997,6000, not \"\(tones)\".")
    }

    private static func frequencies(_ text: String) -> [Double]? {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        let frequencies = parts.compactMap { part in
            Double(part.drop { $0 == " " }).flatMap { LoopbackSignal.toneRangeHz.contains($0) ? $0 : nil }
        }
        guard frequencies.count == parts.count, frequencies.count <= LoopbackSignal.mostTones,
            Set(frequencies).count == frequencies.count
        else { return nil }
        return frequencies
    }
}

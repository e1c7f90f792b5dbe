import OpusCodec

/// Signals and packets that the codec's tests work on.
enum Signals {
    /// A voice of sorts: a rounded saw of gliding pitch, swelling and fading three times a second; 48 kHz.
    static func voice(samples: Int) -> [Int16] {
        var pitch = 0.0
        var swell = 0.0
        var smooth = (0.0, 0.0)
        return (0..<samples).map { _ in
            swell = swell >= 1 ? swell - 1 : swell + 3.0 / 48_000
            let level = swell < 0.5 ? 2 * swell : 2 - 2 * swell
            pitch = pitch >= 1 ? pitch - 1 : pitch + (130 + 30 * level) / 48_000
            smooth.0 += 0.25 * (2 * pitch - 1 - smooth.0)
            smooth.1 += 0.25 * (smooth.0 - smooth.1)
            return Int16(12_000 * smooth.1 * (0.2 + 0.8 * level))
        }
    }

    /// `pcm` encoded frame by frame.
    static func packets(_ pcm: [Int16], _ settings: EncoderSettings) throws -> [[UInt8]] {
        var encoder = try OpusEncoder(settings: settings)
        return stride(from: 0, to: pcm.count - encoder.frameSampleCount + 1, by: encoder.frameSampleCount).map {
            start in
            var packet = [UInt8](repeating: 0, count: 1_275)
            var room = packet.mutableSpan
            let length = encoder.encode(pcm.span.extracting(start..<(start + encoder.frameSampleCount)), into: &room)
            return Array(packet.prefix(max(length, 0)))
        }
    }

    /// Mean square difference.
    static func error(_ left: some Collection<Int16>, _ right: some Collection<Int16>) -> Double {
        zip(left, right).reduce(0.0) { $0 + (Double($1.0) - Double($1.1)) * (Double($1.0) - Double($1.1)) }
            / Double(max(left.count, 1))
    }
}

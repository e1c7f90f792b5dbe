internal import AudioKit
internal import Realtime

/// Brings a program's sound to 48 kHz, talk spurt by talk spurt: of each, exactly as many samples come out as its length at
/// 48 kHz, so that a position in one rate is a position in the other.
struct SpurtResampler: ~Copyable {
    let rate: PortRate
    /// Nil between spurts, and at 48 kHz.
    private var resampler: Resampler?
    private var silence = SampleBuffer(capacity: 256)
    /// Samples at 48 kHz that the spurt will have, and those that have come out.
    private var (wanted, given) = (0, 0)

    init(_ rate: PortRate) { self.rate = rate }

    /// Samples at 48 kHz that have not come out yet.
    var heldSamples: Int { wanted - given }

    /// Takes samples of the program; at most as many as the block holds at 48 kHz, less what is held.
    ///
    /// - Returns: Samples at the block's beginning.
    mutating func process(_ samples: Span<Int16>, into block: inout SampleBuffer) -> Int {
        wanted += samples.count * rate.ratio
        var made = 0
        if rate == .hz48000 {
            var room = block.mutableSamples(samples.count)
            for index in 0..<room.count { room[index] = samples[index] }
            made = room.count
        } else {
            if resampler == nil { resampler = Resampler(from: rate.rawValue, to: 48_000, quality: 4) }
            var room = block.mutableSamples(block.capacity)
            made = resampler?.process(samples, into: &room).produced ?? 0
        }
        given += made
        return made
    }

    /// Brings out some of what is held, and ends the spurt with the last of it.
    ///
    /// - Returns: Samples at the block's beginning; 0 if nothing is held.
    mutating func flush(into block: inout SampleBuffer) -> Int {
        guard heldSamples > 0 else { return 0 }
        var room = block.mutableSamples(min(heldSamples, block.capacity))
        var made = Self.pushOut(of: &resampler, with: silence, into: &room)
        if made == 0 {
            for index in 0..<room.count { room[index] = 0 }
            made = room.count
        }
        given += made
        if heldSamples == 0 { reset() }
        return made
    }

    private static func pushOut(
        of resampler: inout Resampler?, with silence: borrowing SampleBuffer, into room: inout MutableSpan<Int16>
    ) -> Int {
        resampler?.process(silence.samples(silence.capacity), into: &room).produced ?? 0
    }

    /// Forgets what is held.
    mutating func reset() {
        (wanted, given) = (0, 0)
        resampler = nil
    }
}

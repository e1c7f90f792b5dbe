import AudioKit
import TestSupport
import Testing

@Suite struct OpusCodecTests {
    private func settings(_ change: (inout EncoderSettings) -> Void) -> EncoderSettings {
        var settings = EncoderSettings()
        change(&settings)
        return settings
    }

    private func decode(_ packets: [[UInt8]], frame: Int = 960) throws -> [Int16] {
        var decoder = try OpusDecoder()
        return packets.flatMap { packet in
            var pcm = [Int16](repeating: 0, count: frame)
            var room = pcm.mutableSpan
            let count = decoder.decode(packet.span.bytes, into: &room)
            return Array(pcm.prefix(max(count, 0)))
        }
    }

    @Test(
        "Every frame duration survives encode and decode, and the packet says how long it is",
        arguments: EncoderSettings.FrameDuration.allCases)
    func roundTrip(duration: EncoderSettings.FrameDuration) throws {
        let pcm = SyntheticVoice.samples(48_000)
        let packets = try Signals.packets(
            pcm,
            settings {
                $0.frameDuration = duration
                $0.application = .audio
                $0.bitrateBps = 64_000
            })
        #expect(packets.allSatisfy { OpusPacket.samples(in: $0.span.bytes) == duration.samples })
        let back = try decode(packets, frame: duration.samples)
        let delay = 312  // The encoder looks 6.5 ms ahead.
        let power = Signals.error(pcm, [Int16](repeating: 0, count: pcm.count))
        #expect(Signals.error(pcm[9_600..<40_000], back[(9_600 + delay)..<(40_000 + delay)]) < power / 4)
    }

    /// The band that a packet is coded in, 0 (4 kHz) to 4 (20 kHz), by its first byte (RFC 6716 §3.1).
    private func band(_ packet: [UInt8]) -> Int {
        switch packet[0] >> 3 {
        case 0...3, 16...19: 0
        case 4...7: 1
        case 8...11, 20...23: 2
        case 12, 13, 24...27: 3
        default: 4
        }
    }

    @Test(
        "No packet is coded in a wider band than the peer plays",
        arguments: [(8_000, 0), (12_000, 1), (16_000, 2), (24_000, 3), (48_000, 4)])
    func playbackRate(rate: Int, widest: Int) throws {
        let noise = Signals.noise(48_000)
        let packets = try Signals.packets(
            noise,
            settings {
                $0.limitBandwidth(toPlaybackRate: rate)
            })
        #expect(packets.map(band).max() == widest)
    }

    @Test("A limit never widens the band, and takes hold of an encoder that is running")
    func narrowing() throws {
        var narrow = settings { $0.maxBandwidth = .wideband }
        narrow.limitBandwidth(toPlaybackRate: 48_000)
        #expect(narrow.maxBandwidth == .wideband)
        let noise = Signals.noise(96_000)
        var encoder = try OpusEncoder(settings: settings { $0.bitrateBps = 96_000 })
        var bands: [Int] = []
        for frame in 0..<100 {
            if frame == 50 { encoder.set(settings { $0.maxBandwidth = .narrowband }) }
            var bytes = [UInt8](repeating: 0, count: 1_275)
            var room = bytes.mutableSpan
            let count = encoder.encode(noise.span.extracting((frame * 960)..<(frame * 960 + 960)), into: &room)
            bands.append(band(Array(bytes.prefix(count))))
        }
        #expect(bands[40] == 4 && bands[50...].max() == 0)
    }

    @Test("With a constant bitrate all packets have one size; without, they have not")
    func constantBitrate() throws {
        for isConstant in [true, false] {
            let packets = try Signals.packets(
                SyntheticVoice.samples(96_000), settings { $0.constantBitrate = isConstant })
            #expect((Set(packets.map(\.count)).count == 1) == isConstant)
        }
    }

    @Test("What is decoded lags behind what was encoded by the encoder's look-ahead", arguments: [false, true])
    func lookahead(isVoice: Bool) throws {
        let settings = settings {
            $0.application = isVoice ? .voip : .audio
            $0.bitrateBps = 128_000
        }
        #expect(try OpusEncoder(settings: settings).lookaheadSamples == 312)
        let pcm = Signals.noise(24_000)
        let heard = try decode(try Signals.packets(pcm, settings))
        let alike = (0..<700).map { lag in
            var sum = 0.0
            for index in 9_600..<12_000 { sum += Double(pcm[index]) * Double(heard[index + lag]) }
            return (lag: lag, sum: sum)
        }
        #expect(alike.max { $0.sum < $1.sum }?.lag == 312)
    }

    @Test("A mono decoder takes stereo packets")
    func stereoToMono() throws {
        let mono = SyntheticVoice.samples(48_000)
        let packets = try Signals.packets(mono.flatMap { [$0, $0] }, settings { $0.channels = 2 })
        let back = try decode(packets)
        #expect(back.count == 48_000)
        #expect(Signals.error(back, [Int16](repeating: 0, count: back.count)) > 1_000_000)
    }

    @Test("What was lost comes back nearer from FEC than from concealment")
    func fecBeatsConcealment() throws {
        let packets = try Signals.packets(
            SyntheticVoice.samples(144_000), settings { $0.expectedLossPercent = 20 })
        let clean = try decode(packets)
        var errors = (fec: 0.0, concealed: 0.0)
        for lost in stride(from: 20, to: packets.count - 2, by: 5) {
            let next = packets[lost + 1]
            guard OpusPacket.hasFEC(next.span.bytes) else { continue }
            for usesFEC in [true, false] {
                var decoder = try OpusDecoder()
                var pcm = [Int16](repeating: 0, count: 960)
                for packet in packets[..<lost] {
                    var room = pcm.mutableSpan
                    _ = decoder.decode(packet.span.bytes, into: &room)
                }
                var room = pcm.mutableSpan
                let count =
                    usesFEC
                    ? decoder.recoverFEC(fromNext: next.span.bytes, samples: 960, into: &room)
                    : decoder.conceal(samples: 960, into: &room)
                #expect(count == 960)
                let error = Signals.error(pcm, clean[(lost * 960)..<((lost + 1) * 960)])
                if usesFEC { errors.fec += error } else { errors.concealed += error }
            }
        }
        #expect(errors.concealed > 0)
        #expect(errors.fec < errors.concealed / 2)
    }

    @Test("Packets made with FEC and expected loss carry it, those without do not", arguments: [1, 2], [20, 40, 60])
    func fecFlag(channels: Int, milliseconds: Int) throws {
        let pcm = SyntheticVoice.samples(96_000 * channels)
        let duration = try #require(EncoderSettings.FrameDuration(rawValue: milliseconds))
        func share(_ fec: Bool) throws -> Double {
            let made = settings {
                $0.channels = channels
                $0.frameDuration = duration
                $0.fec = fec
                $0.expectedLossPercent = 20
                $0.bitrateBps = 24_000 * channels
            }
            let packets = try Signals.packets(pcm, made)
            return Double(packets.count { OpusPacket.hasFEC($0.span.bytes) }) / Double(packets.count)
        }
        #expect(try share(true) > 0.5)
        #expect(try share(false) == 0)
    }

    @Test("The least expected loss of a lossy call's encoder brings FEC at the bitrate of calls")
    func leastLossWithFEC() throws {
        let packets = try Signals.packets(SyntheticVoice.samples(96_000), settings { $0.expectedLossPercent = 7 })
        #expect(packets.count { OpusPacket.hasFEC($0.span.bytes) } > packets.count / 2)
    }

    @Test("With DTX, silence becomes packets too small to send, and speech does not")
    func discontinuousTransmission() throws {
        let speechThenSilence = SyntheticVoice.samples(48_000) + [Int16](repeating: 0, count: 96_000)
        let packets = try Signals.packets(speechThenSilence, settings { $0.dtx = true })
        #expect(packets[5..<50].allSatisfy { !OpusPacket.isDiscontinuous($0.span.bytes) })
        #expect(packets[80...].count { OpusPacket.isDiscontinuous($0.span.bytes) } > 40)
    }

    @Test("Bitrate, expected loss and complexity change while encoding")
    func runTimeChanges() throws {
        var encoder = try OpusEncoder(settings: EncoderSettings())
        let pcm = SyntheticVoice.samples(96_000)
        func bytes(_ frames: Range<Int>) -> Int {
            frames.reduce(0) { total, frame in
                var packet = [UInt8](repeating: 0, count: 1_275)
                var room = packet.mutableSpan
                return total + encoder.encode(pcm.span.extracting((frame * 960)..<((frame + 1) * 960)), into: &room)
            }
        }
        let before = bytes(0..<40)
        encoder.set(bitrateBps: 12_000)
        encoder.set(complexity: 0)
        encoder.set(expectedLossPercent: 1_000)  // Clamped, not refused.
        let after = bytes(50..<90)
        #expect(Double(after) < 0.6 * Double(before))
    }

    @Test("A frame of the wrong size, no room, and out-of-range channels are errors")
    func refusals() throws {
        var encoder = try OpusEncoder(settings: EncoderSettings())
        let short = [Int16](repeating: 0, count: 100)
        var packet = [UInt8](repeating: 0, count: 1_275)
        var room = packet.mutableSpan
        #expect(encoder.encode(short.span, into: &room) < 0)
        #expect(throws: OpusError.self) { _ = try OpusEncoder(settings: settings { $0.channels = 3 }) }
        #expect(throws: OpusError.self) { _ = try OpusDecoder(channels: 0) }
        var decoder = try OpusDecoder()
        var pcm = [Int16](repeating: 0, count: 100)
        var span = pcm.mutableSpan
        #expect(decoder.conceal(samples: 960, into: &span) < 0)
        #expect(decoder.decode([UInt8]().span.bytes, into: &span) < 0)
    }

    @Test("After a restore the decoder gives the very samples it gave after the save")
    func saveAndRestore() throws {
        let packets = try Signals.packets(SyntheticVoice.samples(48_000), EncoderSettings())
        var decoder = try OpusDecoder()
        var pcm = [Int16](repeating: 0, count: 960)
        func decode(_ index: Int) -> [Int16] {
            let packet = packets[index]
            var room = pcm.mutableSpan
            _ = decoder.decode(packet.span.bytes, into: &room)
            return pcm
        }
        for index in 0..<20 { _ = decode(index) }
        decoder.save()
        let first = decode(20)
        var room = pcm.mutableSpan
        _ = decoder.conceal(samples: 960, into: &room)
        decoder.restore()
        #expect(decode(20) == first)
    }

    @Test("Random and truncated packets never trap, and never claim more than 120 ms")
    func hostilePackets() throws {
        var random = SeededGenerator(seed: 7)
        var decoder = try OpusDecoder()
        var pcm = [Int16](repeating: 0, count: OpusPacket.maximumSamples)
        let real = try Signals.packets(
            SyntheticVoice.samples(9_600), settings { $0.expectedLossPercent = 20 })
        var hostile = real.flatMap { packet in packet.indices.map { Array(packet[..<$0]) } }
        hostile += (0..<4_000).map { _ in
            (0..<Int.random(in: 0...40, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        for packet in hostile {
            #expect((0...OpusPacket.maximumSamples).contains(OpusPacket.samples(in: packet.span.bytes)))
            _ = OpusPacket.hasFEC(packet.span.bytes)
            var room = pcm.mutableSpan
            let count = decoder.decode(packet.span.bytes, into: &room)
            if count > 0 { #expect(count == OpusPacket.samples(in: packet.span.bytes)) }
            _ = decoder.recoverFEC(fromNext: packet.span.bytes, samples: 960, into: &room)
        }
    }
}

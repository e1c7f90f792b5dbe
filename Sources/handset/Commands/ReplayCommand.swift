internal import ArgumentParser
internal import AudioKit
internal import CallMedia
internal import MediaEngine
internal import Playout
internal import RTP
internal import Realtime
internal import Files

/// `handset replay`: what a device would have heard of a recorded stream.
struct ReplayCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay", abstract: "Play a recorded RTP stream through the jitter buffer into a WAV.",
        discussion: """
            Reads rtpdump and pcap recordings of unencrypted Opus. A file of `handset run --capture` is \
            replayed as the call went, to the sample, and compared with what the device heard.
            """)

    @Argument(help: "The recording: rtpdump (#!rtpplay1.0) or classic pcap.", completion: .file())
    var recording: String

    @Option(name: [.short, .long], help: "The WAV to write; none if not given.", completion: .file())
    var output: String?

    @Option(help: "The stream's SSRC, decimal or 0x…; the busiest stream if not given.")
    var ssrc: String?

    @Option(name: .customLong("payload-type"), help: "The payload type of Opus; the stream's commonest if not given.")
    var payloadType: UInt8?

    @Option(name: .customLong("frame-ms"), help: "Milliseconds pulled at a time: 10, 20, 40 or 60.")
    var frameMilliseconds = 20

    @Flag(help: "Print the statistics as one JSON object.")
    var json = false

    func validate() throws {
        guard EncoderSettings.FrameDuration(rawValue: frameMilliseconds) != nil else {
            throw ValidationError("--frame-ms must be 10, 20, 40 or 60, not \(frameMilliseconds).")
        }
        if let ssrc, Self.number(ssrc) == nil { throw ValidationError("--ssrc \(ssrc) is not a 32-bit number.") }
    }

    func run() throws {
        let bytes = try InputFile.bytes(of: recording)
        let packets = try PacketRecording(parsing: bytes)
        if StreamReplay.isCapture(packets), let option = choice {
            throw CommandFailure(
                .usage,
                "\(recording) is what `handset run --capture` has written of a call, and is replayed as the call went: "
                    + "leave out \(option)")
        }
        var replay = StreamReplay()
        replay.ssrc = ssrc.flatMap(Self.number)
        replay.payloadType = payloadType
        replay.frameSamples = frameMilliseconds * 48
        guard let result = try replay.run(packets) else {
            throw CommandFailure(
                .audioFileUnusable,
                "\(recording) contains no matching RTP packet. Is the stream encrypted, or is its SSRC different?")
        }
        if let output { try write(result.samples, to: output) }
        Terminal.print(json ? Self.json(result) : Self.text(result, packets))
    }

    /// An option that chooses how a stream is replayed; nil if none does.
    private var choice: String? {
        if ssrc != nil { return "--ssrc" }
        if payloadType != nil { return "--payload-type" }
        return frameMilliseconds == 20 ? nil : "--frame-ms"
    }

    private static func number(_ text: String) -> UInt32? {
        text.hasPrefix("0x") ? UInt32(text.dropFirst(2), radix: 16) : UInt32(text)
    }

    private func write(_ samples: [Int16], to path: String) throws {
        var writer = try WAVWriter(path: path, sparing: [FileIdentity(path: recording)].compactMap(\.self))
        try writer.append(samples.span)
        try writer.finish()
    }

    private static func text(_ result: StreamReplay.Result, _ recording: PacketRecording) -> String {
        let playout = result.statistics
        return """
            stream          SSRC \(result.ssrc), payload type \(result.payloadType), \
            \(playout.packetsReceived) packets (\(result.otherPackets) others in the recording)
            played          \((Double(result.samples.count) / 48_000).rounded(toPlaces: 2)) s
            lost            \(playout.packetsLost), late \(playout.packetsLate), duplicate \(playout.packetsDuplicate), \
            reordered \(playout.packetsReordered), discarded \(playout.packetsDiscarded)
            concealed       \(playout.samplesConcealed / 48) ms, recovered by FEC \(playout.samplesRecovered / 48) ms
            stretched       \(playout.samplesAccelerated / 48) ms taken out, \(playout.samplesDecelerated / 48) ms put in
            jitter buffer   mean \(Double(playout.meanBufferDelayNanoseconds / 100_000) / 10) ms, \
            p95 \(Double(playout.bufferDelayNanoseconds(quantile: 0.95) / 100_000) / 10) ms
            checksum        \(result.checksum)
            """ + (result.comparison.map { "\n" + text($0) } ?? "")
                + (recording.isTruncated ? "\nThe recording ends in the middle of a packet." : "")
    }

    private static func text(_ comparison: StreamReplay.Comparison) -> String {
        var text = "the call        "
        if comparison.isSame {
            text += "the same: every sample is the one that the device heard"
        } else if let milliseconds = comparison.firstDifferenceMilliseconds {
            text += "differs from \((milliseconds / 1_000).rounded(toPlaces: 2)) s on from what the device heard"
        } else {
            text += "the device took no sound"
        }
        if comparison.recordsLost > 0 {
            text += "\n                \(comparison.recordsLost) notes are missing, because the disk was slow"
        }
        if comparison.decoder != OpusLibrary.version, !comparison.isSame {
            text += "\n                the device decoded with \(comparison.decoder), this is \(OpusLibrary.version)"
        }
        return text
    }

    private static func json(_ result: StreamReplay.Result) -> String {
        let playout = result.statistics
        var object = JSONObjectText()
        object.add("ssrc", Double(result.ssrc))
        object.add("payload_type", Double(result.payloadType))
        object.add("packets_received", Double(playout.packetsReceived))
        object.add("packets_lost", Double(playout.packetsLost))
        object.add("packets_late", Double(playout.packetsLate))
        object.add("packets_discarded", Double(playout.packetsDiscarded))
        object.add("packets_duplicate", Double(playout.packetsDuplicate))
        object.add("packets_reordered", Double(playout.packetsReordered))
        object.add("other_packets", Double(result.otherPackets))
        object.add("played_ms", Double(result.samples.count) / 48)
        object.add("concealed_ms", Double(playout.samplesConcealed) / 48)
        object.add("recovered_ms", Double(playout.samplesRecovered) / 48)
        object.add("accelerated_ms", Double(playout.samplesAccelerated) / 48)
        object.add("decelerated_ms", Double(playout.samplesDecelerated) / 48)
        object.add("jitter_buffer_mean_ms", Double(playout.meanBufferDelayNanoseconds) / 1e6)
        object.add("jitter_buffer_p95_ms", Double(playout.bufferDelayNanoseconds(quantile: 0.95)) / 1e6)
        object.add("checksum", "\(result.checksum)")
        if let comparison = result.comparison {
            object.add("same_as_call", comparison.isSame ? "yes" : "no")
            object.add("differs_from_ms", comparison.firstDifferenceMilliseconds)
            object.add("records_lost", Double(comparison.recordsLost))
        }
        return object.text
    }
}

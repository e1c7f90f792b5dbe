import Core
import ICE
import TestSupport
import Testing
@testable import MediaEngine

@Suite("What a worker sees of a datagram")
struct DatagramClassTests {
    private static let packet: [UInt8] = [0x80, 111, 0, 1, 0, 0, 0, 2, 0xCA, 0xFE, 0xF0, 0x0D, 9, 9, 9]
    private static let report: [UInt8] = [0x80, 201, 0, 1, 0xCA, 0xFE, 0xF0, 0x0D]

    private func look(_ bytes: [UInt8]) -> DatagramClass {
        var bytes = bytes
        var span = bytes.mutableSpan
        return demultiplex(at: span.mutableBytes)
    }

    private func indication(_ method: STUNMethod, _ data: [UInt8]) throws -> [UInt8] {
        var builder = STUNBuilder(.indication, method, TransactionID(high: 1, low: 2))
        builder.append(.xorPeerAddress, try #require(SocketAddress(host: "192.0.2.7", port: 4_000)))
        builder.append(.data, data)
        return builder.finish()
    }

    @Test(
        "Media that a TURN server relays is found, in channel data and in Data indications",
        arguments: [packet, report])
    func relayedMedia(media: [UInt8]) throws {
        let channelData = ChannelData(channel: 0x4001, data: media).encoded(padded: false)
        guard case .relayedMedia(0xCAFE_F00D, let isControl, let start, let end, 0x4001?) = look(channelData) else {
            Issue.record("\(look(channelData))")
            return
        }
        #expect(Array(channelData[start..<end]) == media && isControl == (media == Self.report))
        let indication = try indication(.data, media)
        guard case .relayedMedia(0xCAFE_F00D, isControl, let first, let last, nil) = look(indication) else {
            Issue.record("\(look(indication))")
            return
        }
        #expect(Array(indication[first..<last]) == media)
    }

    @Test("What is relayed and no media, and what only looks like it, is the connection's")
    func connectivity() throws {
        for data in [[], [0, 1], [22, 254, 253, 0], Array(Self.packet.prefix(9))] as [[UInt8]] {
            guard case .connectivity = look(try indication(.data, data)) else {
                Issue.record("\(data)")
                continue
            }
            guard case .connectivity = look(ChannelData(channel: 0x4001, data: data).encoded(padded: false)) else {
                Issue.record("\(data)")
                continue
            }
        }
        // A server sends no Send indications.
        guard case .connectivity = look(try indication(.send, Self.packet)) else {
            Issue.record("a Send indication was taken")
            return
        }
    }

    @Test("A Data indication cut short at any length, or with random bytes, leads to nothing beyond its end")
    func truncation() throws {
        let whole = try indication(.data, Self.packet)
        for length in 0..<whole.count {
            if case .relayedMedia = look(Array(whole.prefix(length))) { Issue.record("taken at \(length) bytes") }
        }
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<4 {
                bytes[.random(in: 20..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            guard case .relayedMedia(_, _, let start, let end, _) = look(bytes) else { continue }
            #expect(start <= end && end <= bytes.count)
        }
    }
}

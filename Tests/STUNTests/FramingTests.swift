import ICE
import TestSupport
import Testing

@Suite("STUN among other bytes")
struct FramingTests {
    @Test("The glance finds STUN, and the receiver's fragment in a binding request")
    func peek() {
        let request = Vectors.request
        #expect(Peek.looksLikeSTUN(request))
        let range = Peek.receiverFragment(request)
        #expect(range.map { String(decoding: request[$0], as: UTF8.self) } == "evtj")
        #expect(
            Peek.transactionID(request) == TransactionID(high: 0xB7E7_A701_BC34_D686, low: 0xFA87_DFAE))
        let response = Vectors.responseIPv4
        #expect(Peek.looksLikeSTUN(response))
        #expect(Peek.receiverFragment(response) == nil)
    }

    @Test("The glance at cut or random bytes finds nothing beyond the end")
    func peekAtAnything() {
        var generator = SeededGenerator(seed: 3)
        for length in 0..<Vectors.request.count {
            let bytes = Array(Vectors.request.prefix(length))
            #expect(!Peek.looksLikeSTUN(bytes))
            #expect(Peek.receiverFragment(bytes) == nil)
        }
        for _ in 0..<20_000 {
            var bytes = Vectors.request
            for _ in 0..<4 { bytes[.random(in: 20..<108, using: &generator)] = .random(in: 0...255, using: &generator) }
            let range = Peek.receiverFragment(bytes)
            #expect(range.map { $0.upperBound <= bytes.count } ?? true)
        }
    }

    @Test("A stream in pieces of any size gives the frames that went into it", arguments: [1, 2, 3, 7, 50, 1_000])
    func framer(pieceSize: Int) {
        let frames = [
            Vectors.request, ChannelData(channel: 0x4001, data: [1, 2, 3, 4, 5]).encoded(padded: true),
            Vectors.responseIPv6, ChannelData(channel: 0x4FFF, data: []).encoded(padded: true),
        ]
        let stream = frames.flatMap(\.self)
        var framer = STUNStreamFramer()
        var found: [[UInt8]] = []
        for start in stride(from: 0, to: stream.count, by: pieceSize) {
            found += framer.push(Array(stream[start..<min(start + pieceSize, stream.count)]))
        }
        #expect(found == frames)
        #expect(ChannelData(parsing: found[1]) == ChannelData(channel: 0x4001, data: [1, 2, 3, 4, 5]))
    }

    @Test("A stream of another kind is given up at its first strange frame")
    func brokenStream() {
        var framer = STUNStreamFramer()
        #expect(framer.push(Vectors.request + Array("SSH-2.0-other".utf8)) == [Vectors.request])
        #expect(framer.isBroken)
        #expect(framer.push(Vectors.request).isEmpty)
    }

    @Test("Channel data cut short, or with a number that is no channel's, is refused")
    func channelData() {
        let bytes = ChannelData(channel: 0x4000, data: [9, 8, 7]).encoded(padded: false)
        #expect(bytes == [0x40, 0, 0, 3, 9, 8, 7])
        for length in 0..<bytes.count { #expect(ChannelData(parsing: Array(bytes.prefix(length))) == nil) }
        #expect(ChannelData(parsing: [0x50, 0, 0, 0]) == nil)
        #expect(ChannelData(parsing: [0x3F, 0xFF, 0, 0]) == nil)
    }
}

/// The glances, at arrays.
private enum Peek {
    static func looksLikeSTUN(_ bytes: [UInt8]) -> Bool { STUNPeek.looksLikeSTUN(bytes.span.bytes) }
    static func receiverFragment(_ bytes: [UInt8]) -> Range<Int>? { STUNPeek.receiverFragment(bytes.span.bytes) }
    static func transactionID(_ bytes: [UInt8]) -> TransactionID? { STUNPeek.transactionID(bytes.span.bytes) }
}

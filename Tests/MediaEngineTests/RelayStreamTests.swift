import Realtime
import Glibc
import TestSupport
import Testing
import Core

@testable import MediaEngine

/// A TURN connection over TCP, with a server that is a mere socket.
@Suite("Media between a worker and a TURN server's stream")
struct RelayStreamTests {
    /// Media of 100 bytes behind a channel's prefix, not a multiple of four: RTP by its first byte.
    private let media: [UInt8] = [0x40, 0, 0, 101, 0x80] + [UInt8](repeating: 7, count: 100)

    @Test("A server that reads nothing loses media and no more: nothing blocks, little is kept, and all is counted")
    func stalled() throws {
        let scene = try Scene()
        var sent = 0
        for _ in 0..<60_000 {
            if scene.worker.sendToOtherEnd(media) { sent += 1 }
            #expect(scene.carry() == nil)
            // By now kernel and buffer are full: a hundred more in a row were dropped.
            if scene.stream.mediaNotSent > 100 { break }
        }
        #expect(scene.stream.mediaNotSent > 100)
        // What did go out is whole and padded.
        let received = scene.readAll()
        #expect(received.count >= 108 * 10)
        for start in stride(from: 0, to: min(received.count, 10_800), by: 108) {
            #expect(Array(received[start..<(start + 105)]) == media)
        }
        #expect(sent >= scene.stream.mediaNotSent)
        // Requests still fit behind the media, until even they show that nobody is there.
        let request = [UInt8](repeating: 0, count: 1_000)
        scene.fill()
        var failure: RelayStream.Event?
        for _ in 0..<20_000 where failure == nil { failure = scene.stream.send(request) }
        guard case .closed(let reason)? = failure else { throw Unexpected() }
        #expect(reason.contains("takes nothing"))
    }

    @Test(
        "Media from the server comes out at the worker's end, for any pieces in which it arrives; the rest is reported"
    )
    func incoming() throws {
        let scene = try Scene()
        // A STUN message without attributes, and media with its padding.
        let stun: [UInt8] = [1, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42] + [UInt8](repeating: 1, count: 12)
        let frames = stun + media + [0, 0, 0] + stun + media + [0, 0, 0]
        var messages: [[UInt8]] = []
        for byte in frames { messages += try scene.deliver([byte]) }
        #expect(messages == [stun, stun])
        var batch = DatagramBatch()
        #expect(scene.receive(into: &batch) == 2)
        let length = batch.bytes(0).byteCount
        #expect(length == 108 && scene.stream.mediaNotReceived == 0)
    }

    @Test("A worker that does not read loses media of the server's, and it is counted")
    func slowWorker() throws {
        let scene = try Scene()
        for _ in 0..<1_000 { _ = try scene.deliver(media + [0, 0, 0]) }
        #expect((500..<1_000).contains(scene.stream.mediaNotReceived))
    }

    @Test("A server that speaks something else is left")
    func notTURN() throws {
        let scene = try Scene()
        let events = try scene.step(after: Array("SSH-2.0-OpenSSH".utf8))
        guard case .closed(let reason)? = events.last else { throw Unexpected() }
        #expect(reason.contains("does not speak TURN"))
        #expect(scene.stream.send([0]) == nil)
    }

    @Test("A connection that is not made in time is given up")
    func late() throws {
        let scene = try Scene(isConnected: false)
        let deadline = try #require(scene.stream.nextDeadline)
        #expect(scene.stream.checkTime(deadline.advanced(byNanoseconds: -1)) == nil)
        guard case .closed? = scene.stream.checkTime(deadline) else { throw Unexpected() }
    }
}

private struct Unexpected: Error {}

extension RelayStream.Event: Equatable {
    /// Events are the same if they print the same.
    /// Events compare by what they say.
    public static func == (one: RelayStream.Event, other: RelayStream.Event) -> Bool { "\(one)" == "\(other)" }
}

/// A stream, its worker's end of the pair, and the server's end of the connection.
private final class Scene {
    let stream: RelayStream
    let worker: UDPSocket
    private let server: Int32
    private var batch = DatagramBatch()
    private var buffer = [UInt8](repeating: 0, count: 16_384)

    init(isConnected: Bool = true) throws {
        let listener = LoopbackListener()
        defer { close(listener.descriptor) }
        let address = try #require(SocketAddress(host: "127.0.0.1", port: listener.port))
        let socket = try StreamSocket(connectingTo: address)
        var other: UDPSocket?
        let end = try UDPSocket(joinedTo: &other, sendBufferBytes: RelayStream.bridgeBytes)
        guard let far = other.take() else { throw Unexpected() }
        worker = end
        stream = RelayStream(to: address, tls: nil, stream: socket, bridge: far, slot: 2, at: .zero)
        server = listener.accept()
        guard isConnected else { return }
        let events = stream.step(readable: false, writable: true, buffer: &buffer)
        try #require(events == [.opened])
    }

    deinit { close(server) }

    func carry() -> RelayStream.Event? { stream.carryMedia(through: &batch) }

    func receive(into batch: inout DatagramBatch) -> Int {
        _ = worker.receive(into: &batch)
        return batch.count
    }

    /// Fills the way to the server again.
    func fill() {
        let before = stream.mediaNotSent
        let media: [UInt8] = [0x40, 0, 0, 4, 0x80, 1, 2, 3]
        while stream.mediaNotSent < before + 100 {
            _ = worker.sendToOtherEnd(media)
            _ = carry()
        }
    }

    /// Everything that has reached the server.
    func readAll() -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            var polled = pollfd(fd: server, events: Int16(POLLIN), revents: 0)
            guard poll(&polled, 1, 50) == 1 else { return bytes }
            let count = recv(server, &buffer, buffer.count, 0)
            guard count > 0 else { return bytes }
            bytes += buffer.prefix(count)
        }
    }

    func step(after bytes: [UInt8]) throws -> [RelayStream.Event] {
        try #require(Glibc.send(server, bytes, bytes.count, 0) == bytes.count)
        var polled = pollfd(fd: stream.descriptors.stream, events: Int16(POLLIN), revents: 0)
        try #require(poll(&polled, 1, 5_000) == 1)
        return stream.step(readable: true, writable: false, buffer: &buffer)
    }

    func deliver(_ bytes: [UInt8]) throws -> [[UInt8]] {
        try step(after: bytes).map { event in
            guard case .message(let message) = event else { throw Unexpected() }
            return message
        }
    }
}

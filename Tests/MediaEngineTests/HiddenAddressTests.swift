import Realtime
import Glibc
import ICE
import MediaEngine
import DomainNames
import Core
import SecureTransport
import Synchronization
import Testing

/// Peers that hide their addresses behind names, as browsers do. The link is the loopback.
@Suite("Calls to addresses behind names of the local link", .timeLimit(.minutes(2)))
struct HiddenAddressTests {
    @Test("A peer that gives only a name, and that waits to be asked, is found by multicast DNS")
    func found() async throws {
        let responder = try Responder(name: "0f8e2c4a.local", address: [127, 0, 0, 1])
        let pair = try EnginePair()
        // The device knows no candidate of the caller's, so it sends no check by itself; and the caller knows a name.
        let call = try ConnectedCall(
            pair, number: 1, toldToCaller: { $0.replacingHost(with: "0F8E2C4A.local") }, toldToDevice: { _ in nil })
        try await pair.callerEvents.flowing(call.caller)
        try await pair.device.receives(10, on: call.device)
        pair.shutdown()
        #expect(await responder.stop() > 0)
    }
}

extension String {
    /// A candidate's text with another host.
    fileprivate func replacingHost(with host: String) -> String {
        var fields = split(separator: " ").map(String.init)
        if fields.count > 4 { fields[4] = host }
        return fields.joined(separator: " ")
    }
}

/// Answers questions for one name on the loopback, by multicast, as browsers do.
private final class Responder: Sendable {
    private let task: Task<Int, Never>

    init(name: String, address: [UInt8]) throws {
        let socket = try UDPSocket(sharingPort: 5_353)
        let group = try #require(NameResolver.group)
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        try #require(socket.localAddress.port == 5_353)
        let hasJoined = socket.join(group, through: loopback)
        try #require(hasJoined)
        let question = try #require(DNSMessage.query(for: name, .a))
        // The question's name, then an address of this class and type for two minutes.
        let answer =
            [0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0] + question[12..<(question.count - 4)]
            + [0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4] + address
        let box = SocketBox(socket)
        task = Task.detached {
            var answered = 0
            var batch = DatagramBatch()
            while !Task.isCancelled {
                var polled = pollfd(fd: box.socket.descriptor, events: Int16(POLLIN), revents: 0)
                poll(&polled, 1, 100)
                _ = box.socket.receive(into: &batch)
                for index in 0..<batch.count {
                    let datagram = batch.bytes(index)
                    var bytes: [UInt8] = []
                    for offset in 0..<datagram.byteCount {
                        bytes.append(datagram.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
                    }
                    guard bytes == question else { continue }
                    answered += 1
                    box.socket.send(answer, from: loopback, to: group)
                }
            }
            return answered
        }
    }

    /// How many questions it has answered.
    func stop() async -> Int {
        task.cancel()
        return await task.value
    }

    private final class SocketBox: Sendable {
        let socket: UDPSocket
        init(_ socket: consuming UDPSocket) { self.socket = socket }
    }
}

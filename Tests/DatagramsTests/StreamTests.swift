import Glibc
import Core
import Realtime
import TestSupport
import Testing

@Suite("Joined sockets, and streams")
struct StreamTests {
    @Test("What one end of a pair sends, the other receives whole and in order, with the time")
    func pair() throws {
        var other: UDPSocket?
        let one = try UDPSocket(joinedTo: &other, sendBufferBytes: 65_536)
        guard let two = other.take() else { throw Unexpected() }
        let sent = (1...20).map { count in [UInt8](repeating: UInt8(count), count: count * 7) }
        for datagram in sent {
            let isTaken = one.sendToOtherEnd(datagram)
            #expect(isTaken)
        }
        var batch = DatagramBatch()
        let twoReceive = two.receive(into: &batch)
        #expect(twoReceive == 0)
        #expect(batch.count == sent.count)
        for index in 0..<batch.count {
            let bytes = batch.bytes(index)
            var received: [UInt8] = []
            for offset in 0..<bytes.byteCount {
                received.append(bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
            }
            #expect(received == sent[index])
            #expect(batch.arrival(index).nanoseconds > 0)
        }
        // And back as a batch, whatever its addresses say.
        let twoSend = two.send(&batch)
        #expect(twoSend == 0)
        let oneReceive = one.receive(into: &batch)
        #expect(oneReceive == 0)
        #expect(batch.count == sent.count)
    }

    @Test("A pair whose other end does not read holds back a bounded number of datagrams, and a batch reports how many")
    func bounded() throws {
        var other: UDPSocket?
        let one = try UDPSocket(joinedTo: &other, sendBufferBytes: 131_072)
        guard let two = other.take() else { throw Unexpected() }
        let packet = [UInt8](repeating: 7, count: 120)
        var taken = 0
        while taken < 10_000, one.sendToOtherEnd(packet) { taken += 1 }
        // At least as many as two streams of a call bring in a second, at most some seconds' worth.
        #expect((100...1_000).contains(taken), "\(taken)")
        var batch = DatagramBatch()
        var received = 0
        repeat {
            let twoReceive = two.receive(into: &batch)
            #expect(twoReceive == 0)
            received += batch.count
        } while batch.count > 0
        #expect(received == taken)
        let isTakenAgain = one.sendToOtherEnd(packet)
        #expect(isTakenAgain, "there is room again")
    }

    @Test("A stream connects, carries bytes both ways, and reports that it has ended")
    func stream() throws {
        let listener = LoopbackListener()
        let address = try address(of: listener)
        let set = try DescriptorSet()
        let stream = try StreamSocket(connectingTo: address)
        try set.insert(stream.descriptor, token: 42, forWriting: true)
        let first = try wait(set)
        #expect(first.token == 42 && first.isWritable)
        let error = stream.connectionError(with: address)
        #expect(error == nil)
        set.update(stream.descriptor, token: 42, forWriting: false)
        expect(stream.write([1, 2, 3]), .bytes(3))
        let peer = listener.accept()
        var buffer = [UInt8](repeating: 0, count: 16)
        expect(stream.read(into: &buffer), .wait)
        #expect(recv(peer, &buffer, 16, 0) == 3)
        let answer: [UInt8] = [9, 8]
        #expect(send(peer, answer, 2, 0) == 2)
        let second = try wait(set)
        #expect(second.isReadable && !second.isWritable)
        expect(stream.read(into: &buffer), .bytes(2))
        #expect(Array(buffer.prefix(2)) == [9, 8])
        close(peer)
        let third = try wait(set)
        #expect(third.isReadable)
        guard case .gone = stream.read(into: &buffer) else { throw Unexpected() }
    }

    @Test("A stream that is not read takes a bounded number of bytes")
    func stalled() throws {
        let listener = LoopbackListener()
        let address = try address(of: listener)
        let stream = try StreamSocket(connectingTo: address)
        let set = try DescriptorSet()
        try set.insert(stream.descriptor, token: 1, forWriting: true)
        _ = try wait(set)
        let piece = [UInt8](repeating: 0, count: 1_000)
        var taken = 0
        while taken < 1 << 26, case .bytes(let count) = stream.write(piece) { taken += count }
        #expect(taken < 1 << 26)
        expect(stream.write(piece), .wait)
    }

    @Test("A descriptor that the kernel does not watch is reported, not left out in silence")
    func notWatched() throws {
        let set = try DescriptorSet()
        let error = #expect(throws: RealtimeError.self) { try set.insert(-1, token: 1, forWriting: true) }
        #expect(error?.errno == EBADF)
    }

    @Test("A connection that is refused says so")
    func refused() throws {
        let listener = LoopbackListener()
        let address = try address(of: listener)
        close(listener.descriptor)
        let stream = try StreamSocket(connectingTo: address)
        let set = try DescriptorSet()
        try set.insert(stream.descriptor, token: 1, forWriting: true)
        let ready = try wait(set)
        #expect(ready.isWritable)
        let error = stream.connectionError(with: address)
        #expect(error?.errno == ECONNREFUSED)
    }

    private func address(of listener: LoopbackListener) throws -> SocketAddress {
        try #require(SocketAddress(host: "127.0.0.1", port: listener.port))
    }

    private func expect(_ progress: StreamSocket.Progress, _ expected: StreamSocket.Progress) {
        #expect(progress == expected)
    }

    private func wait(_ set: borrowing DescriptorSet) throws -> DescriptorSet.Ready {
        var polled = pollfd(fd: set.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&polled, 1, 5_000)
        let ready = set.ready()
        return try #require(ready.first)
    }
}

private struct Unexpected: Error {}

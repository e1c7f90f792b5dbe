import Datagrams
import Realtime
import Testing
import Timekeeping

@Suite("Addresses and sockets")
struct DatagramsTests {
    @Test(
        "Literal addresses are read and written back",
        arguments: ["127.0.0.1", "192.0.2.33", "0.0.0.0", "::1", "2001:db8::1", "::"])
    func literals(host: String) throws {
        let address = try #require(SocketAddress(host: host, port: 5004))
        #expect(address.host == host)
        #expect(address.port == 5004)
        #expect(address.isIPv6 == host.contains(":"))
        #expect(address.isLoopback == ["127.0.0.1", "::1"].contains(host))
        #expect(address.isUnspecified == ["0.0.0.0", "::"].contains(host))
    }

    @Test(
        "What is no literal address is nil", arguments: ["", "localhost", "1.2.3", "300.1.1.1", "::g", "fe80::1%none9"])
    func notLiteral(host: String) {
        #expect(SocketAddress(host: host, port: 1) == nil)
    }

    @Test("An address prints with its port, IPv6 in brackets")
    func printing() {
        #expect(SocketAddress(host: "127.0.0.1", port: 80)?.description == "127.0.0.1:80")
        #expect(SocketAddress(host: "::1", port: 80)?.description == "[::1]:80")
    }

    @Test("A socket for all addresses tells which one was written to, and answers from there")
    func wildcard() throws {
        let any = try #require(SocketAddress(host: "0.0.0.0", port: 0))
        let server = try UDPSocket(boundTo: any)
        let client = try UDPSocket(boundTo: try #require(SocketAddress(host: "127.0.0.1", port: 0)))
        // Any address of 127/8 is this machine's; a plain answer would leave from 127.0.0.1.
        let called = try #require(SocketAddress(host: "127.0.0.9", port: server.localAddress.port))
        client.send([1, 2, 3], to: called)
        var batch = DatagramBatch()
        try Self.receive(from: server, into: &batch)
        let (local, source) = (batch.localAddress(0), batch.address(0))
        #expect(local?.host == "127.0.0.9")

        var answer = DatagramBatch()
        answer.commit(byteCount: 1, by: DatagramPath(socket: 0, local: local, remote: source))
        let dropped = server.send(&answer)
        #expect(dropped == 0)
        try Self.receive(from: client, into: &batch)
        let answerer = batch.address(0)
        #expect(answerer == called)
        server.send([4], from: local, to: source)
        try Self.receive(from: client, into: &batch)
        let again = batch.address(0)
        #expect(again == called)
    }

    private static func receive(from socket: borrowing UDPSocket, into batch: inout DatagramBatch) throws {
        let timer = try DeadlineTimer()
        let wakeup = try Wakeup()
        timer.wait(
            until: MonotonicClock.now.advanced(by: .seconds(5)), wakeup: wakeup.handle, socket: socket.descriptor)
        _ = socket.receive(into: &batch)
        let count = batch.count
        try #require(count == 1)
    }

    @Test("The machine's interfaces are listed with their addresses")
    func interfaces() {
        let loopback = NetworkInterface.all().first { $0.address.host == "127.0.0.1" }
        #expect(loopback?.name == "lo")
    }

    @Test("A batch of datagrams crosses the loopback with its sender, its time and its bytes")
    func batch() throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let sender = try UDPSocket(boundTo: loopback)
        let receiver = try UDPSocket(boundTo: loopback)
        let before = MonotonicClock.now
        var outgoing = DatagramBatch()
        for number in 1...3 {
            var slot = outgoing.freeSlot()
            slot.storeBytes(of: UInt8(number), as: UInt8.self)
            outgoing.commit(byteCount: number, by: DatagramPath(to: receiver.localAddress))
        }
        let dropped = sender.send(&outgoing)
        #expect(dropped == 0)

        let timer = try DeadlineTimer()
        let wakeup = try Wakeup()
        var incoming = DatagramBatch()
        timer.wait(
            until: before.advanced(by: .seconds(5)), wakeup: wakeup.handle, socket: receiver.descriptor)
        let error = receiver.receive(into: &incoming)
        try #require(error == 0)
        let count = incoming.count
        try #require(count == 3)
        for index in 0..<3 {
            let (length, source) = (incoming.bytes(index).byteCount, incoming.address(index))
            #expect(length == index + 1 && source == sender.localAddress)
            let (truncated, arrival) = (incoming.isTruncated(index), incoming.arrival(index))
            #expect(!truncated)
            #expect((before...MonotonicClock.now).contains(arrival))
        }
        _ = receiver.receive(into: &incoming)
        let left = incoming.count
        #expect(left == 0)
    }

    @Test("A second socket on the same port is refused, with the port in the message")
    func portInUse() throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let first = try UDPSocket(boundTo: loopback)
        let error = #expect(throws: RealtimeError.self) { _ = try UDPSocket(boundTo: first.localAddress) }
        #expect(error?.description.contains("\(first.localAddress.port)") == true)
        #expect(error?.description.contains("Another process has that port") == true)
    }

    @Test("A wait ends when its deadline has come, and when it is woken")
    func waiting() throws {
        let timer = try DeadlineTimer()
        let wakeup = try Wakeup()
        let deadline = MonotonicClock.now.advanced(by: .milliseconds(2))
        timer.wait(until: deadline, wakeup: wakeup.handle, socket: nil)
        #expect(MonotonicClock.now >= deadline)
        wakeup.signal()
        timer.wait(until: nil, wakeup: wakeup.handle, socket: nil)
        wakeup.clear()
        timer.wait(until: Instant.zero, wakeup: wakeup.handle, socket: nil)
    }
}

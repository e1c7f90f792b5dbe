import Glibc
import Core
import Realtime
import TestSupport
import Testing

@Suite("Sockets", .witnessed(slack: .seconds(5)))
struct DatagramsTests {
    @Test("A socket for all addresses reports which one was written to, and answers from there")
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
        let wakeup = try Wakeup()
        let outcome = DeadlineWait.wait(
            until: MonotonicClock.now.advanced(by: .seconds(5)), wakeup: wakeup.handle, socket: socket.descriptor)
        #expect(outcome.isReadable && !outcome.isSignalled)
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

        let wakeup = try Wakeup()
        var incoming = DatagramBatch()
        _ = DeadlineWait.wait(
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
        let wakeup = try Wakeup()
        let deadline = MonotonicClock.now.advanced(by: .milliseconds(2))
        let late = DeadlineWait.wait(until: deadline, wakeup: wakeup.handle, socket: nil)
        #expect(MonotonicClock.now >= deadline && !late.isSignalled && !late.isReadable)
        wakeup.signal()
        let woken = DeadlineWait.wait(until: nil, wakeup: wakeup.handle, socket: nil)
        #expect(woken.isSignalled)
        wakeup.clear()
        let past = DeadlineWait.wait(until: Instant.zero, wakeup: wakeup.handle, socket: nil)
        #expect(!past.isSignalled)
    }

    @Test("Of many sockets those are found that have datagrams, all of them at once, and none that was emptied")
    func readySockets() throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        var set = try SocketSet()
        let count = 150
        let sockets = UnsafeMutablePointer<UDPSocket>.allocate(capacity: count)
        for slot in 0..<count {
            (sockets + slot).initialize(to: try UDPSocket(boundTo: loopback, receiveBufferBytes: 4_096))
            try set.add(sockets + slot, at: slot)
        }
        defer {
            sockets.deinitialize(count: count)
            sockets.deallocate()
        }
        let sender = try UDPSocket(boundTo: loopback)
        let none = set.findReady()
        #expect(none == 0)
        sender.send([1], to: sockets[7].localAddress)
        let one = set.findReady()
        let slot = set.readySlot(0)
        #expect(one == 1 && slot == 7)

        var batch = DatagramBatch()
        for slot in 0..<count { sender.send([2], to: sockets[slot].localAddress) }
        var read: [Int] = []
        for index in 0..<set.findReady() {
            let slot = set.readySlot(index)
            _ = set.receive(from: slot, into: &batch, limit: 8)
            let waited = batch.count
            #expect(waited == (slot == 7 ? 2 : 1))
            read.append(slot)
        }
        #expect(read.sorted() == Array(0..<count))
        let left = set.findReady()
        #expect(left == 0)
    }

    @Test("What was received through a socket that is closed never counts for the next socket in its place")
    func placesGivenAgain() throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        var set = try SocketSet()
        let sockets = UnsafeMutablePointer<UDPSocket>.allocate(capacity: 2)
        for index in 0..<2 { (sockets + index).initialize(to: try UDPSocket(boundTo: loopback)) }
        defer {
            sockets.deinitialize(count: 2)
            sockets.deallocate()
        }
        let (former, latter) = (SocketSet.slot(at: 5, round: 0), SocketSet.slot(at: 5, round: 1))
        #expect(former != latter && SocketSet.place(of: former) == SocketSet.place(of: latter))
        try set.add(sockets, at: former)
        let removed = set.remove(at: former)
        try set.add(sockets + 1, at: latter)
        let (again, none) = (set.remove(at: former), set.remove(at: latter + SocketSet.capacity))
        #expect(removed == sockets && again == nil && none == nil)

        let sender = try UDPSocket(boundTo: loopback)
        sender.send([1], to: sockets[1].localAddress)
        var batch = DatagramBatch()
        _ = set.receive(from: former, into: &batch, limit: 8)
        let stale = batch.count
        let found = set.findReady()
        let slot = set.readySlot(0)
        #expect(stale == 0 && found == 1 && slot == latter)
        _ = set.receive(from: latter, into: &batch, limit: 8)
        let (arrived, origin) = (batch.count, batch.socket(0))
        #expect(arrived == 1 && origin == latter)

        let last = set.removeNext()
        let nothing = set.removeNext()
        #expect(last == sockets + 1 && nothing == nil)
    }

    @Test("A socket that the kernel does not watch is refused, with its address, what the kernel said and what to try")
    func notWatched() throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        var set = try SocketSet()
        let sockets = UnsafeMutablePointer<UDPSocket>.allocate(capacity: 1)
        sockets.initialize(to: try UDPSocket(boundTo: loopback))
        defer {
            sockets.deinitialize(count: 1)
            sockets.deallocate()
        }
        let watcher = try set.makeWatcher()
        try watcher.watch(sockets.pointee, slot: 2)
        // Once more is the one refusal that every kernel gives.
        let error = #expect(throws: RealtimeError.self) { try watcher.watch(sockets.pointee, slot: 3) }
        #expect(error?.errno == EEXIST && error?.description.contains("\(sockets.pointee.localAddress)") == true)
        #expect(throws: RealtimeError.self) { try set.add(sockets, at: 3) }
        let found = set.findReady()
        #expect(found == 0, "what was refused is not in the set")
        let full = RealtimeError(doing: "watching UDP socket 127.0.0.1:9 (epoll)", errno: ENOSPC)
        #expect(full.description.contains("fs.epoll.max_user_watches"))
    }
}

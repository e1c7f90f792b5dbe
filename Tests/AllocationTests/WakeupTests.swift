@testable import CallMedia
@testable import MediaEngine
import CThreadCounters
import Core
import Realtime
import SecureTransport
import TestSupport
import Testing

/// Workers on real sockets, whose turns the test's own thread takes.
@Suite("What a media worker asks of the kernel", .serialized)
struct WakeupTests {
    @Test("Of 41 sockets a worker reads those that have datagrams, and its wake-up only when it was signalled")
    func readsInVain() throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        var caller = try HandDrivenWorker()
        var device = try HandDrivenWorker()
        let count = 40
        let sockets = UnsafeMutablePointer<UDPSocket>.allocate(capacity: 2 * count)
        for index in 0..<2 * count {
            (sockets + index).initialize(to: try UDPSocket(boundTo: loopback, receiveBufferBytes: 4_096))
        }
        defer {
            sockets.deinitialize(count: 2 * count)
            sockets.deallocate()
        }
        for index in 0..<count {
            try caller.add(sockets + index, slot: SocketSet.firstExtraSlot + index)
            try device.add(sockets + count + index, slot: SocketSet.firstExtraSlot + index)
        }
        var generator = SeededGenerator(seed: 1)
        let there = SRTPKey.random(.aeadAES128GCM, using: &generator)
        let back = SRTPKey.random(.aeadAES128GCM, using: &generator)
        try caller.add(
            number: 1, to: device.address, local: 2, remote: 3, send: there, receive: back,
            audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)))
        try device.add(
            number: 1, to: caller.address, local: 3, remote: 2, send: back, receive: there,
            audio: AudioBehaviour(source: .echo))
        for round in 0..<50 {
            if round % 10 == 0 {
                caller.wakeupHandle.signal()
                device.wakeupHandle.signal()
            }
            caller.turn()
            device.turn()
        }
        let totals = device.totals()
        #expect(totals.media >= 40)
        for counters in [caller.stop(), device.stop()] {
            let counters = try #require(counters)
            #expect(counters.datagramsReceived >= 20)
            // Its first turn had one socket yet, which is read without asking.
            #expect(counters.readsInVain <= 1)
        }
    }

    @Test("A flood on 100 sockets is read up to a bound in each turn, from all of them alike, and to its end")
    func flood() throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        var worker = try HandDrivenWorker()
        let (count, each) = (100, 16)
        let sockets = UnsafeMutablePointer<UDPSocket>.allocate(capacity: count)
        for index in 0..<count { (sockets + index).initialize(to: try UDPSocket(boundTo: loopback)) }
        defer {
            sockets.deinitialize(count: count)
            sockets.deallocate()
        }
        for index in 0..<count { try worker.add(sockets + index, slot: SocketSet.firstExtraSlot + index) }
        worker.step()
        let sender = try UDPSocket(boundTo: loopback)
        for _ in 0..<each {
            for index in 0..<count { sender.send([0xFF], to: sockets[index].localAddress) }
        }
        let before = (handset_test_allocations(), handset_test_locks())
        worker.step()
        let after = (handset_test_allocations(), handset_test_locks())
        #expect(after == before, "a flood costs neither an allocation nor a lock")
        // What the worker left is read here, and sent once more.
        var left: [Int] = []
        var batch = DatagramBatch()
        for index in 0..<count {
            _ = sockets[index].receive(into: &batch)
            left.append(batch.count)
            for _ in 0..<batch.count { sender.send([0xFF], to: sockets[index].localAddress) }
        }
        #expect(each * count - left.reduce(0, +) == 500)
        #expect(left.allSatisfy { $0 == each - 5 }, "\(left)")
        for _ in 0..<3 { worker.step() }
        let final = worker.stop()
        let counters = try #require(final)
        #expect(counters.datagramsReceived == each * count && counters.datagramsNotMedia == each * count)
        #expect(counters.turnsCutShort == 3)
    }
}

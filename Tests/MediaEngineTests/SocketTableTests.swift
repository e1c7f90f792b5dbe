@testable import MediaEngine
import Core
@testable import Realtime
import Testing

/// Which sockets a worker has, by slot.
@Suite("A worker's sockets by slot")
struct SocketTableTests {
    @Test("A call's socket never has the slot of one before it, whose datagrams may still be on their way")
    func slotsDoNotRecur() throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let set = try SocketSet()
        var book = SocketTable(try set.makeWatcher())
        var given: Set<Int> = []
        for _ in 0..<3 {
            let (slot, socket) = try book.open(loopback)
            let (other, otherSocket) = try book.open(loopback)
            #expect(given.insert(slot).inserted && given.insert(other).inserted)
            #expect(SocketSet.place(of: slot) == 2 && SocketSet.place(of: other) == 3)
            book.free(socketAt: UInt(bitPattern: socket))
            book.free(socketAt: UInt(bitPattern: otherSocket))
            let bound = book.boundAddress(slot)
            #expect(bound == nil)
        }
    }

    @Test("A socket that the kernel does not watch is refused to its owner, and leaves its slot free")
    func notWatched() throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        // A set that is none: the kernel refuses whatever it is to watch.
        let other = try UDPSocket(boundTo: loopback)
        var book = SocketTable(try SocketWatcher(set: other.descriptor))
        for _ in 0..<300 {
            #expect(throws: RealtimeError.self) { _ = try book.open(loopback) }
            var end: UDPSocket?
            #expect(throws: RealtimeError.self) { _ = try book.openPair(holdingBack: 4_096, otherEnd: &end) }
        }
        let address = book.boundAddress(SocketSet.firstExtraSlot)
        #expect(address == nil)
    }
}

import Glibc
import TestSupport
import Testing
import Core

@testable import Realtime

@Suite("Changes of the network")
struct NetworkWatchTests {
    private func bytes(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) } }

    /// A message as the kernel writes it, filled up to a multiple of four.
    private func message(_ kind: UInt8, _ body: [UInt8]) -> [UInt8] {
        let whole = bytes(UInt32(16 + body.count)) + [kind, 0, 0, 0] + bytes(1) + bytes(0) + body
        return whole + [UInt8](repeating: 0, count: -whole.count & 3)
    }

    private func link(_ index: UInt32, flags: UInt32, kind: UInt8 = 16) -> [UInt8] {
        message(kind, [0, 0, 1, 0] + bytes(index) + bytes(flags) + bytes(0) + [5, 0, 3, 0, 120])
    }

    private func address(_ last: UInt8, kind: UInt8 = 20, flags: UInt8 = 0, scope: UInt8 = 0) -> [UInt8] {
        // Another attribute (IFA_LABEL) comes first.
        message(kind, [2, 24, flags, scope] + bytes(2) + [6, 0, 3, 0, 97, 0, 0, 0] + [8, 0, 1, 0, 192, 0, 2, last])
    }

    private func route(bits: UInt8 = 0, table: UInt8 = 254, type: UInt8 = 1, flags: UInt32 = 0) -> [UInt8] {
        message(24, [2, bits, 0, 0, table, 3, 0, type] + bytes(flags))
    }

    @Test("Links, addresses and default routes are read, also several at once")
    func reading() {
        let all = link(2, flags: 0x1_1043) + address(7) + route() + address(7, kind: 21) + link(3, flags: 0x1003)
        #expect(
            RouteMessage.read(all) == [
                .link(index: 2, isUsable: true), .addressAdded(index: 2, address: [192, 0, 2, 7]), .defaultRouteAdded,
                .addressRemoved(index: 2, address: [192, 0, 2, 7]), .link(index: 3, isUsable: false),
            ])
        #expect(RouteMessage.read(link(2, flags: 0x1_1043, kind: 17)) == [.link(index: 2, isUsable: false)])
    }

    @Test("The loopback, addresses of the link, tentative ones, and routes that lead elsewhere are passed over")
    func ignored() {
        let all =
            link(1, flags: 0x49) + address(7, scope: 253) + address(7, scope: 254) + address(7, flags: 0x40)
            + route(bits: 24) + route(table: 255) + route(type: 3) + route(flags: 0x200) + message(28, [2, 0, 0, 0])
        #expect(RouteMessage.read(all).isEmpty)
    }

    @Test("Truncated and unknown messages are ignored")
    func anything() {
        let all = link(2, flags: 0x1_1043) + address(7) + route()
        for length in 0..<all.count { #expect(RouteMessage.read(Array(all.prefix(length))).count < 3) }
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2_000 {
            let noise = (0..<Int.random(in: 0...120, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            _ = RouteMessage.read(noise)
            // With a length that is right.
            _ = RouteMessage.read(message([16, 17, 20, 21, 24].randomElement(using: &generator) ?? 16, noise))
        }
    }

    @Test("A burst of changes is reported once, soon, and the next no earlier than the interval")
    func burst() {
        var timeline = Timeline(NetworkWatch())
        timeline.feed(.messages(link(2, flags: 0x1_1043)))
        timeline.advance(by: .milliseconds(30), firing: .timerFired)
        timeline.feed(.messages(address(7)))
        timeline.feed(.messages(route()))
        #expect(timeline.outputs.isEmpty)
        timeline.advance(by: .milliseconds(20), firing: .timerFired)
        #expect(timeline.outputs == [.changed])
        timeline.feed(.messages(address(8)))
        timeline.advance(by: .milliseconds(249), firing: .timerFired)
        #expect(timeline.outputs == [.changed])
        timeline.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(timeline.outputs == [.changed, .changed])
        #expect(timeline.core.nextDeadline == nil)
    }

    @Test("What repeats what is known is no change; what went away and comes back is")
    func repetition() {
        var timeline = Timeline(NetworkWatch())
        func changes(_ bytes: [UInt8]) -> Int {
            let before = timeline.outputs.count
            timeline.feed(.messages(bytes))
            timeline.advance(by: .seconds(1), firing: .timerFired)
            return timeline.outputs.count - before
        }
        #expect(changes(link(2, flags: 0x1_1043)) == 1 && changes(link(2, flags: 0x1_1043)) == 0)
        #expect(changes(link(2, flags: 0x1003)) == 0 && changes(link(2, flags: 0x1_1043)) == 1)
        #expect(changes(address(7)) == 1 && changes(address(7)) == 0)
        #expect(changes(address(7, kind: 21)) == 1 && changes(address(7)) == 1)
        #expect(changes(route()) == 1)
    }

    @Test("The kernel's socket can be opened, and has nothing to say by itself")
    func socket() throws {
        let descriptor = try RouteSocket.open()
        defer { close(descriptor) }
        var block = [UInt8](repeating: 0, count: 4_096)
        let count = read(descriptor, &block, block.count)
        #expect(count > 0 || errno == EAGAIN)
    }
}

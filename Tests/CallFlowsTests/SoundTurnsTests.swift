import BotWire
import Testing

@testable import CallFlows

@Suite("Turns of the sounds of a flow's server")
struct SoundTurnsTests {
    private func address(_ name: String) throws -> WebAddress {
        try #require(WebAddress("http://127.0.0.1/\(name).wav", WebAddress.Scheme.requests))
    }

    @Test(
        "A call has one sound got at a time, so that others have theirs at once, and what it has waited for is dropped")
    func fair() throws {
        var turns = SoundTurns()
        #expect(try turns.add(address("a0"), for: "a") == nil)
        #expect(try turns.next() == address("a0"))
        #expect(try turns.add(address("a1"), for: "a") == nil)
        // Its turn is taken.
        #expect(turns.next() == nil)
        for number in 2..<1_000 {
            #expect(try turns.add(address("a\(number)"), for: "a") == address("a\(number - 1)"))
        }
        for call in ["b", "c", "d"] {
            #expect(try turns.add(address(call), for: call) == nil)
            #expect(try turns.next() == address(call))
        }
        #expect(try turns.add(address("e"), for: "e") == nil)
        #expect(turns.next() == nil)
        turns.end(try address("b"))
        // The call that is not served yet comes first, though it has asked later.
        #expect(try turns.next() == address("e"))
        turns.end(try address("a0"))
        #expect(try turns.next() == address("a999"))
    }

    @Test("A sound that another call waits for, too, is not dropped, and neither is one that is asked for again")
    func shared() throws {
        var turns = SoundTurns()
        _ = try turns.add(address("x"), for: "a")
        _ = turns.next()
        _ = try turns.add(address("music"), for: "a")
        #expect(try turns.share(address("music"), with: "b") == nil)
        #expect(try turns.add(address("other"), for: "a") == nil)
        #expect(try turns.contains(address("music")) && turns.contains(address("x")))
        #expect(try turns.share(address("other"), with: "a") == nil)
        turns.end(try address("x"))
        #expect(try turns.next() == address("music"))
    }

    @Test("Sounds that wait have a bound")
    func bound() throws {
        var turns = SoundTurns()
        for number in 0..<SoundTurns.mostWaiting {
            #expect(try turns.add(address("\(number)"), for: "\(number)") == nil)
        }
        #expect(throws: SoundTurns.Full.self) { try turns.add(address("more"), for: "more") }
        // One of its own makes room.
        #expect(try turns.add(address("again"), for: "7") == address("7"))
    }
}

@testable import CallMedia
@testable import MediaEngine
import Testing
import Core

@Suite("Where a call's frames are put")
struct PacerTests {
    private let grid = Pacer.Grid(periodNanoseconds: 20_000_000)

    /// The number of the slot that is chosen, if so many calls are in each already.
    private func choice(_ calls: [Int], count: Int = 3, room: Int) -> Int? {
        var slots = InlineArray<3, Pacer.Slot>(repeating: Pacer.Slot(due: .zero))
        for number in slots.indices {
            slots[number].due = Instant.zero.advanced(byNanoseconds: Int64(number) * Pacer.slotNanoseconds)
            slots[number].calls = calls[number]
        }
        let chosen = Pacer.choice(among: slots, count: count, room: room)
        return slots.indices.first { slots[$0].due == chosen.due }
    }

    @Test("A call joins the slot with the most calls that has room for it, so that the worker wakes seldom")
    func gathering() {
        #expect(choice([0, 0, 0], room: 11) == 0)
        #expect(choice([0, 1, 0], room: 11) == 1)
        #expect(choice([2, 1, 3], room: 11) == 2)
        #expect(choice([4, 10, 11], room: 11) == 1)
    }

    @Test("Calls are spread once no slot has room")
    func spreading() {
        #expect(choice([12, 11, 13], room: 11) == 1)
        #expect(choice([11, 11, 11], room: 11) == 0)
    }

    @Test("A call that is not to wait for others gets one of the first two slots")
    func early() {
        #expect(choice([1, 0, 0], count: 2, room: 0) == 1)
        #expect(choice([1, 1, 0], count: 2, room: 0) == 0)
    }

    @Test("A slot has room for as many calls as are done before the next slot")
    func room() {
        // 224 µs for each frame of 20 ms.
        #expect(grid.room(costOfCall: 0.0112) == 11)
        #expect(Pacer.Grid(periodNanoseconds: 60_000_000).room(costOfCall: 0.0112) == 3)
        #expect(grid.room(costOfCall: 0.5) == 0)
        #expect(grid.room(costOfCall: 0) == 250)
    }
}

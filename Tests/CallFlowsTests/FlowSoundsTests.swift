import BotWire
import CallFlow
import Testing

@testable import CallFlows

@Suite("The sounds of a flow's server")
struct FlowSoundsTests {
    private func address(_ number: Int) throws -> WebAddress {
        try #require(WebAddress("http://127.0.0.1/\(number).wav", WebAddress.Scheme.requests))
    }

    @Test("A sound is got once while it is kept, and the kept ones have a bound, each having a descriptor")
    func bounded() async throws {
        let sounds = FlowSounds()
        var files: [FlowSoundFile] = []
        for number in 0..<(2 * FlowSounds.mostKept) {
            files.append(
                try await sounds.file(at: address(number), for: "a") { .success([UInt8](repeating: 1, count: 10)) }
                    .get())
        }
        #expect(await sounds.count == FlowSounds.mostKept)
        let newest = try await sounds.file(at: address(2 * FlowSounds.mostKept - 1), for: "b") {
            .failure(FlowUnusable("it is got again"))
        }.get()
        #expect(newest.path == files.last?.path)
        let oldest = await sounds.file(at: try address(0), for: "a") { .failure(FlowUnusable("it is got again")) }
        guard case .failure(let fault) = oldest else { throw FlowUnusable("the oldest is kept") }
        #expect(fault.message == "it is got again")
    }

    @Test("Slow sounds of one call, however many it asks for, hold up none of another call, and none waits for ever")
    func fair() async throws {
        let sounds = FlowSounds()
        let (opened, gate) = AsyncStream.makeStream(of: Void.self)
        let slow = try (0..<200).map { number in
            let address = try address(number)
            return Task {
                await sounds.file(at: address, for: "slow") {
                    for await _ in opened {}
                    return .success([1])
                }
            }
        }
        // It was got while all of those were waited for.
        let other = try await sounds.file(at: address(1_000), for: "other") { .success([2]) }.get()
        #expect(!other.path.isEmpty)
        gate.finish()
        var got = 0
        for task in slow { if case .success = await task.value { got += 1 } }
        #expect((1...slow.count).contains(got))
        // Those that wait are bounded by calls, of which each has one.
        #expect(got < slow.count)
    }
}

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
                try await sounds.file(at: address(number)) { .success([UInt8](repeating: 1, count: 10)) }.get())
        }
        #expect(await sounds.count == FlowSounds.mostKept)
        let newest = try await sounds.file(at: address(2 * FlowSounds.mostKept - 1)) {
            .failure(FlowUnusable("it is got again"))
        }.get()
        #expect(newest.path == files.last?.path)
        let oldest = await sounds.file(at: try address(0)) { .failure(FlowUnusable("it is got again")) }
        guard case .failure(let fault) = oldest else { throw FlowUnusable("the oldest is kept") }
        #expect(fault.message == "it is got again")
    }
}

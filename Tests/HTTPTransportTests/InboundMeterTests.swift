import NIOCore
import NIOEmbedded
import Testing

@testable import HTTPTransport

@Suite("Bytes of requests that are not complete")
struct InboundMeterTests {
    @Test("A stranger that exceeds the budget by itself is refused, and holds nothing")
    func alone() throws {
        let budget = InboundBudget(limit: 1_000)
        let bounds = StrangerBounds(bodyBytes: 10_000, messageBytes: 10_000)
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandler(InboundMeter(budget, bounds, timer: RequestTimer()))
        for _ in 0..<2 { try channel.writeInbound(ByteBuffer(repeating: 32, count: 600)) }
        #expect(budget.crowdedOut == 1 && budget.count == 0)
        let answer = try #require(try channel.readOutbound(as: ByteBuffer.self))
        #expect(String(buffer: answer).hasPrefix("HTTP/1.1 503 "))
        _ = try channel.finish()
    }
}

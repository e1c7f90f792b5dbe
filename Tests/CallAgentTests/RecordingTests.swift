import CallAgent
import Foundation
import Testing

@Suite("Calls that play and record", .timeLimit(.minutes(5)))
struct RecordingTests {
    @Test("Three calls in a row, with no file open between them, are played and recorded whole by every behaviour")
    func threeInARow() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "handset-calls-\(UUID())").path()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let site = try await Site(users: CallSeries.users(CallSeries.Behaviour.allCases.count))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, behaviour) in CallSeries.Behaviour.allCases.enumerated() {
                group.addTask {
                    let series = try await CallSeries(behaviour, number: number, at: site, in: folder)
                    // A call has ended when its files have, so that between two calls neither side has a file.
                    for round in 1...3 { try await series.call(round) }
                    await series.close()
                }
            }
            try await group.waitForAll()
        }
        try await site.close()
    }
}

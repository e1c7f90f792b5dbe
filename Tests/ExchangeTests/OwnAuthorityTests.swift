import Foundation
import Synchronization
import Testing
import Core

@testable import ExchangeServer
import Realtime

@Suite struct OwnAuthorityTests {
    @Test("Exchanges that start for the first time at once make one root, and each has a certificate of it")
    func race() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("authority-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let authority = OwnAuthority(folder: folder, names: ["localhost"])
        let roots = Mutex<[Result<[UInt8], ExchangeError>]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            let root = Result { () throws(ExchangeError) in try authority.issue(at: MonotonicClock.wallTime).root }
            roots.withLock { $0.append(root) }
        }
        let made = try roots.withLock { $0 }.map { try $0.get() }
        let kept = try #require(FileManager.default.contents(atPath: authority.rootPath))
        #expect(made.count == 8 && made.allSatisfy { Data($0) == kept })
    }
}

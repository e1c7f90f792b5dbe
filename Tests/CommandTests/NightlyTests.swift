import Foundation

/// Tests that take longer than each change can wait for; `scripts/nightly` asks for them.
enum NightlyTests {
    static let areWanted = ProcessInfo.processInfo.environment["HANDSET_NIGHTLY"] != nil
}

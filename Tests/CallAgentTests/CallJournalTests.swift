@testable import CallAgent
@testable import CallControl
import Foundation
import Logging
import Testing
import BlockingWork
import Core
import Dispatch

@Suite("Call records")
struct CallJournalTests {
    private let path: String
    private let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    init() throws {
        let folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        path = folder + "/calls.jsonl"
    }

    /// A journal that waits for its disk, however slow the machine is.
    private func makeJournal(_ application: String = "app", days: Int? = nil) -> CallJournal {
        CallJournal(
            path: path, application: application, days: days, patience: .seconds(60), on: .records, logger: quiet)
    }

    private func record(_ reason: CallEndReason, _ peer: UserID) -> CallRecord {
        CallRecord(
            invite: "i1", direction: .incoming, peer: peer, began: .zero, answeredAfter: .milliseconds(1_500),
            duration: .seconds(61), reason: reason, endedBy: .remote)
    }

    @Test("CALL-7: Each call leaves one record, answered or missed, in a file that is its owner's alone")
    func oneEach() async throws {
        let journal = makeJournal()
        let first = journal.begin(invite: "i1", peer: "bob", direction: .incoming)
        let second = journal.begin(invite: nil, peer: "eve", direction: .outgoing)
        await withCheckedContinuation { done in journal.end(second, record(.noAnswer, "eve")) { done.resume() } }
        // On disk when the end is told, whatever becomes of the program then.
        #expect(try CallJournal.records(in: path).map(\.reason) == [nil, "noAnswer"])
        await withCheckedContinuation { done in journal.end(first, record(.completed, "bob")) { done.resume() } }
        let records = try CallJournal.records(in: path)
        #expect(records.map(\.call) == [first, second])
        #expect(records.map(\.peer) == ["bob", "eve"])
        #expect(records.map(\.reason) == ["completed", "noAnswer"])
        #expect(records[0].duration == 61_000 && records[0].answeredAfter == 1_500 && records[0].began != nil)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        await journal.close()
    }

    @Test(
        "A disk that does not answer holds up neither the end of a call nor that of the device", .timeLimit(.minutes(1))
    )
    func hangingDisk() async throws {
        let threads = BlockingThreads(name: "stuck", most: 1)
        let gate = DispatchSemaphore(value: 0)
        // The thread is taken before the journal asks for it.
        let (taken, take) = AsyncStream.makeStream(of: Void.self)
        let stuck = Task {
            await threads.run {
                take.finish()
                gate.wait()
            }
        }
        for await _ in taken {}
        let journal = CallJournal(path: path, application: "app", patience: .zero, on: threads, logger: quiet)
        let call = journal.begin(invite: "i1", peer: "bob", direction: .incoming)
        await withCheckedContinuation { done in journal.end(call, record(.completed, "bob")) { done.resume() } }
        await journal.close()
        #expect(!FileManager.default.fileExists(atPath: path))
        gate.signal()
        await stuck.value
    }

    @Test("CALL-7: A call that was cut off with the program has its one record when the program starts again")
    func cutOff() async throws {
        let journal = makeJournal()
        _ = journal.begin(invite: "i1", peer: "bob", direction: .incoming)
        await journal.close()  // As far as the file can tell, the program has been killed.
        for _ in 0..<2 {
            let again = makeJournal()
            await again.close()
            let records = try CallJournal.records(in: path)
            #expect(records.count == 1)
            #expect(records.first?.reason == "internalError")
            #expect(records.first?.isOver == true)
        }
    }

    @Test("CALL-7: A second device at the same file leaves the first one's calls alone, and keeps no records")
    func second() async throws {
        let journal = makeJournal()
        let call = journal.begin(invite: "i1", peer: "bob", direction: .incoming)
        let other = journal.begin(invite: "i2", peer: "eve", direction: .incoming)
        await withCheckedContinuation { done in journal.end(other, record(.completed, "eve")) { done.resume() } }
        let second = makeJournal()
        let lost = second.begin(invite: "i3", peer: "carol", direction: .outgoing)
        await withCheckedContinuation { done in second.end(lost, record(.completed, "carol")) { done.resume() } }
        await second.close()
        #expect(try CallJournal.records(in: path).map(\.isOver) == [false, true])
        await withCheckedContinuation { done in journal.end(call, record(.completed, "bob")) { done.resume() } }
        await journal.close()
        #expect(try CallJournal.records(in: path).map(\.call) == [call, other])
    }

    @Test("Records that are older than they are kept go when that is asked for, and not at the start; others stay")
    func age() async throws {
        let journal = makeJournal()
        for peer: UserID in ["bob", "eve"] {
            let key = journal.begin(invite: nil, peer: peer, direction: .incoming)
            await withCheckedContinuation { done in journal.end(key, record(.completed, peer)) { done.resume() } }
        }
        await journal.close()
        // Bob's call becomes eight days old.
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { line in
            guard line.contains(#""bob""#) else { return String(line) }
            return String(line).replacing(#/"(began|ended)":(\d+)/#) { match in
                "\"\(match.1)\":\((Int64(match.2) ?? 0) - 8 * 86_400_000)"
            }
        }
        try (lines.joined(separator: "\n") + "\n").write(toFile: path, atomically: true, encoding: .utf8)
        await makeJournal(days: 7).close()
        #expect(try CallJournal.records(in: path).map(\.peer) == ["bob", "eve"])
        for (days, peers) in [(nil, ["bob", "eve"]), (9, ["bob", "eve"]), (7, ["eve"])] as [(Int?, [String])] {
            let again = makeJournal(days: days)
            again.prune()
            await again.close()
            #expect(try CallJournal.records(in: path).map(\.peer) == peers, "\(days ?? 0)")
        }
    }

    @Test("AUTH-8: A device of another application starts without the calls of the old one")
    func anotherApplication() async throws {
        let journal = makeJournal("old")
        let call = journal.begin(invite: "i1", peer: "bob", direction: .incoming)
        journal.end(call, record(.completed, "bob")) {}
        await journal.close()
        let other = makeJournal("new")
        await other.close()
        #expect(try CallJournal.records(in: path) == [])
    }
}

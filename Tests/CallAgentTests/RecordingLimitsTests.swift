import Foundation
import Logging
import Testing

@testable import CallAgent

@Suite("How long recordings are kept")
struct RecordingLimitsTests {
    private typealias File = RecordingLimits.File
    private let files = [
        File(name: "b", bytes: 600_000, age: 90_000), File(name: "a", bytes: 600_000, age: 3_600),
        File(name: "c", bytes: 600_000, age: 200_000), File(name: "now", bytes: 600_000, age: 3),
    ]

    private func limits(days: Int? = nil, megabytes: Int? = nil) -> RecordingLimits {
        var limits = RecordingLimits()
        (limits.days, limits.megabytes) = (days, megabytes)
        return limits
    }

    @Test("Without limits all stay; older ones go, and the oldest of too many, but never one that is being written")
    func excess() {
        #expect(limits().excess(of: files).isEmpty)
        #expect(limits(days: 2).excess(of: files) == ["c"])
        #expect(limits(days: 1).excess(of: files) == ["b", "c"])
        #expect(limits(megabytes: 2).excess(of: files) == ["c"])
        #expect(limits(megabytes: 1).excess(of: files) == ["a", "b", "c"])
        #expect(limits(days: 1, megabytes: 3).excess(of: files) == ["b", "c"])
        #expect(limits(megabytes: 1).excess(of: [File(name: "one", bytes: 9_000_000, age: 599)]).isEmpty)
    }

    @Test("While the clock cannot be right nothing goes by age, and the oldest of too many go nevertheless")
    func implausibleClock() {
        #expect(limits(days: 1).applicable(isAgeKnown: false).excess(of: files).isEmpty)
        #expect(limits(days: 1, megabytes: 2).applicable(isAgeKnown: false).excess(of: files) == ["c"])
        #expect(limits(days: 1).applicable(isAgeKnown: true).excess(of: files) == ["b", "c"])
    }

    @Test("Once a recording does not fit, older ones do not either, however small they are")
    func fits() {
        let recordings = [
            File(name: "new", bytes: 600_000, age: 1_000), File(name: "large", bytes: 500_000, age: 2_000),
            File(name: "small", bytes: 1, age: 3_000),
        ]
        #expect(limits(megabytes: 1).excess(of: recordings) == ["large", "small"])
        // What must stay takes its room.
        let fresh = [File(name: "now", bytes: 9_000_000, age: 1), File(name: "old", bytes: 1, age: 1_000)]
        #expect(limits(megabytes: 1).excess(of: fresh) == ["old"])
    }

    @Test("Only recordings are removed from a folder")
    func folder() throws {
        let folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder + "/x.wav", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        // A recording under way, and one that was written before the clock was set.
        let unset = Date().timeIntervalSince1970 / 3_600 - 24
        for (name, hours) in [
            ("old.wav", 25.0), ("new.wav", 23), ("old.txt", 25), ("old.part.wav", 25), ("old.cut.wav", 25),
            ("old.opus", 25), ("old.part.bob.wav", 25), ("unset.wav", unset),
        ] {
            let path = "\(folder)/\(name)"
            #expect(FileManager.default.createFile(atPath: path, contents: Data("x".utf8)))
            try FileManager.default.setAttributes(
                [.modificationDate: Date() - hours * 3_600], ofItemAtPath: path)
        }
        limits(days: 1).apply(to: folder, Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == [
                "new.wav", "old.part.wav", "old.txt", "unset.wav", "x.wav",
            ])
        limits(days: 1).apply(to: folder + "/none", Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }
}

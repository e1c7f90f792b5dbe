internal import Files
internal import FoundationEssentials
internal import Logging

/// How long recordings are kept, and how many: those that are older, and the oldest of too many, are removed.
public struct RecordingLimits: Hashable, Sendable {
    /// Days for which they are kept; nil for ever.
    public var days: Int?
    /// Megabytes (10^6 bytes) of all of them together; nil for as many as the disk takes.
    public var megabytes: Int?

    /// No limits.
    public init() {}

    /// Those that can be applied: without the age if it is not known.
    func applicable(isAgeKnown: Bool) -> RecordingLimits {
        var limits = self
        if !isAgeKnown { limits.days = nil }
        return limits
    }

    /// A recording, as its folder shows it.
    struct File: Hashable {
        let name: String
        let bytes: Int
        /// Seconds since it was last written to.
        let age: Double
    }

    /// Files written to within this number of seconds are kept: they may belong to a continuing call.
    static let untouchedSeconds = 600.0

    /// The beginning of 2024, in seconds since 1970.
    static let earliestTime = 1_704_067_200.0

    /// The names of those that go.
    func excess(of files: [File]) -> [String] {
        var left = megabytes.map { $0 * 1_000_000 } ?? .max
        // The newest first.
        return files.sorted { ($0.age, $0.name) < ($1.age, $1.name) }.filter { file in
            let isTooOld = days.map { file.age > Double($0) * 86_400 } ?? false
            let fits = file.bytes <= left
            left = fits ? left - file.bytes : 0
            return file.age >= Self.untouchedSeconds && (isTooOld || !fits)
        }.map(\.name)
    }

    /// Whether a name is that of a whole recording; one that is being written is not.
    private static func isRecording(_ name: String) -> Bool {
        ["wav", "opus"].contains { name.hasSuffix(".\($0)") && !name.hasSuffix(".part.\($0)") }
    }

    /// Removes what goes from a folder: files whose names end in `.wav` or `.opus`.
    func apply(to folder: String, _ logger: Logger) {
        guard days != nil || megabytes != nil else { return }
        let manager = FileManager.default
        let now = Date().timeIntervalSince1970
        let names = (try? manager.contentsOfDirectory(atPath: folder)) ?? []
        let files = names.filter(Self.isRecording).compactMap { name -> File? in
            guard let measure = FileMeasure(path: "\(folder)/\(name)"),
                // Written before the clock was set: its age is not known.
                measure.modified >= Self.earliestTime
            else { return nil }
            return File(name: name, bytes: measure.bytes, age: now - measure.modified)
        }
        let old = excess(of: files)
        for name in old {
            do {
                try manager.removeItem(atPath: "\(folder)/\(name)")
            } catch {
                logger.warning("An old recording is not removed", metadata: ["name": "\(name)", "error": "\(error)"])
            }
        }
        if !old.isEmpty { logger.info("Old recordings are removed", metadata: ["count": "\(old.count)"]) }
    }
}

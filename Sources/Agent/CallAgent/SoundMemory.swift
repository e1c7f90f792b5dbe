internal import FoundationEssentials
internal import Core

/// How loud a device was when it stopped: what its file holds, and when the file is written.
///
/// Each value is kept beside the configured one that it replaced, and applies while that one stays in the configuration: a
/// new configured volume takes precedence. Changes within two seconds are written at once.
struct SoundMemory: ProtocolCore, Sendable {
    enum Input: Sendable {
        /// Mute or volume has changed.
        case changed(SoundSettings)
        case timerFired
        /// The device stops: what waits is written at once.
        case finish
    }

    enum Output: Equatable, Sendable {
        /// Replace the file.
        case write([UInt8])
    }

    /// From the first change that is not written to its writing.
    static let delay = Duration.seconds(2)
    /// A file has some 200 bytes.
    static let maximumBytes = 4_096

    private let configured: SoundSettings
    private var settings: SoundSettings
    /// What the file says; nil if that is not known.
    private var written: SoundSettings?
    private(set) var nextDeadline: Instant?

    /// How loud the device is to be now.
    var current: SoundSettings { settings }

    /// Nothing is kept.
    init(configured: SoundSettings) {
        self.configured = configured
        settings = configured
        written = configured
    }

    /// - Parameter bytes: What an earlier run has kept.
    /// - Throws: ``Fault`` if this is something else.
    init(configured: SoundSettings, kept bytes: [UInt8]) throws(Fault) {
        self.init(configured: configured)
        settings = try Kept(bytes).settings(over: configured)
        written = settings
    }

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .changed(let new):
            settings = new
            if nextDeadline == nil { nextDeadline = now.advanced(by: Self.delay) }
        case .timerFired:
            guard let deadline = nextDeadline, now >= deadline else { return }
            write(into: &outbox)
        case .finish: write(into: &outbox)
        }
    }

    /// The file could not be replaced: the next change, or the end, tries again.
    mutating func writingFailed() { written = nil }

    private mutating func write(into outbox: inout [Output]) {
        nextDeadline = nil
        guard settings != written else { return }
        written = settings
        outbox.append(.write(Kept(settings, over: configured).bytes))
    }

    /// What is in a file is not what this version keeps.
    struct Fault: Error, Equatable, CustomStringConvertible {
        let description: String
    }

    /// The file.
    private struct Kept: Codable {
        struct Value<Kind: Codable & Equatable>: Codable {
            let value: Kind
            let configured: Kind

            func applied(over now: Kind) -> Kind { configured == now ? value : now }
        }

        let version: Int
        let muted: Value<Bool>
        let volumeDB: Value<Double>
        let microphoneDB: Value<Double>

        private enum CodingKeys: String, CodingKey {
            case version, muted
            case volumeDB = "volume_db"
            case microphoneDB = "microphone_db"
        }

        init(_ settings: SoundSettings, over configured: SoundSettings) {
            version = 1
            muted = Value(value: settings.isMuted, configured: configured.isMuted)
            volumeDB = Value(value: settings.volumeDB, configured: configured.volumeDB)
            microphoneDB = Value(value: settings.microphoneDB, configured: configured.microphoneDB)
        }

        init(_ bytes: [UInt8]) throws(Fault) {
            guard let kept = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else {
                throw Fault(description: "what is in it is no volume that a device has kept")
            }
            guard kept.version == 1 else {
                throw Fault(description: "it is of version \(kept.version), and this version of Handset knows 1")
            }
            for decibels in [kept.volumeDB.value, kept.microphoneDB.value]
            where SoundSettings.limited(decibels) != decibels {
                throw Fault(description: "a volume of \(decibels) dB is not from -60 to 20")
            }
            self = kept
        }

        func settings(over configured: SoundSettings) -> SoundSettings {
            SoundSettings(
                isMuted: muted.applied(over: configured.isMuted),
                volumeDB: volumeDB.applied(over: configured.volumeDB),
                microphoneDB: microphoneDB.applied(over: configured.microphoneDB))
        }

        var bytes: [UInt8] {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            // All numbers in it are finite, so this cannot fail; an empty file would count as none.
            return (try? encoder.encode(self)).map { Array($0) + [UInt8(ascii: "\n")] } ?? []
        }
    }
}

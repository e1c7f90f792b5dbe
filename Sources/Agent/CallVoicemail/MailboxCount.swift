internal import Files
internal import FoundationEssentials
internal import Voicemail

/// What waits in mailboxes. Messages are read only when a folder has changed, by whichever process.
public struct MailboxCount: Equatable, Sendable {
    /// Messages that were not heard.
    public private(set) var new = 0
    /// Messages that were heard.
    public private(set) var old = 0
    /// When each folder changed last, in seconds since 1970; nil if it does not exist.
    private var changed: [VoicemailFolder: Double?]?

    /// Nothing is counted yet.
    public init() {}

    /// Times of folders are coarse, so that two changes may have the same.
    private static let coarseness = 2.0

    /// Counts again if a folder has changed. It blocks on the disk.
    ///
    /// - Throws: ``VoicemailError`` if a folder cannot be read; then the earlier counts stay, and the next look tries again.
    public mutating func look(at folders: Set<VoicemailFolder>) throws(VoicemailError) {
        let now = Date().timeIntervalSince1970
        var times: [VoicemailFolder: Double?] = [:]
        for folder in folders { times[folder] = .some(FileMeasure(folder: folder.path)?.modified) }
        let areSettled = times.values.allSatisfy { time in time.map { abs(now - $0) > Self.coarseness } ?? true }
        guard times != changed || !areSettled else { return }
        var (new, old) = (0, 0)
        for folder in folders {
            for entry in try folder.messages() {
                if entry.message.isHeard { old += 1 } else { new += 1 }
            }
        }
        (self.new, self.old, changed) = (new, old, times)
    }
}

internal import Core

/// The keys of a call's peer, which media (RFC 4733) and signaling (INFO) may both carry: each counts once.
struct ReceivedKeys {
    /// What has carried a key.
    enum Carrier {
        case media
        case signaling
    }

    private struct Key {
        let key: Character
        let carrier: Carrier
        let began: Instant
        let ended: Instant
    }

    /// How much later than by the one way a key may come by the other.
    private static let patience = Duration.seconds(2)
    /// More keys are not remembered; the oldest are forgotten.
    private static let mostKept = 32

    /// Keys that have come one way only, the oldest first.
    private var unmatched: [Key] = []

    /// Notes a key that has ended.
    ///
    /// - Parameter held: How long it was held; signaling may report a key when it begins or when it ends.
    /// - Returns: False if the other way has brought it already.
    mutating func isNew(_ key: Character, by carrier: Carrier, heldFor held: Duration, at now: Instant) -> Bool {
        let began = carrier == .media ? now.advanced(by: .zero - held) : now
        let other = unmatched.firstIndex {
            $0.carrier != carrier && $0.key == key && $0.ended.advanced(by: Self.patience) >= began
                && now.advanced(by: Self.patience) >= $0.began
        }
        if let other {
            unmatched.remove(at: other)
            return false
        }
        unmatched.append(Key(key: key, carrier: carrier, began: began, ended: now))
        if unmatched.count > Self.mostKept { unmatched.removeFirst() }
        return true
    }
}

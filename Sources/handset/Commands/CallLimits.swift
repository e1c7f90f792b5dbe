internal import ArgumentParser
internal import CallAgent
internal import RTP

/// Ranges of the options of a call, so that a slip is reported before the call is placed.
enum CallLimits {
    /// A day: longer than any call rings or lasts.
    private static let longestSeconds = 86_400

    /// How long to let a call ring: nil, for ever, for 0.
    static func timeToLive(seconds: Int) -> Duration? { seconds == 0 ? nil : .seconds(seconds) }

    /// - Parameters:
    ///   - press: Telephone keys; nil if none are pressed.
    ///   - duration: Seconds after which the call is hung up.
    ///   - ttl: Seconds for which it rings, 0 for ever.
    ///   - minimumLikeness: 0…1.
    static func check(press: String?, duration: Double?, ttl: Int, minimumLikeness: Double?) throws(ValidationError) {
        if let press, press.isEmpty || press.contains(where: { TelephoneEvent($0) == nil }) {
            throw ValidationError("--press must be made of 0-9, *, #, A-D and ! (flash), not \"\(press)\".")
        }
        if let duration, !(duration > 0 && duration <= Double(longestSeconds)) {
            throw ValidationError(
                "--duration must be a number of seconds above 0, up to \(longestSeconds), not \(duration).")
        }
        guard (0...longestSeconds).contains(ttl) else {
            throw ValidationError(
                "--ttl must be a number of seconds from 1 to \(longestSeconds), or 0 for ever, not \(ttl).")
        }
        if let minimumLikeness, !(0...1).contains(minimumLikeness) {
            throw ValidationError("--minimum-likeness must be a number from 0 to 1, not \(minimumLikeness).")
        }
    }
}

extension InviteConfiguration {
    /// Whether a call from a terminal fails at once if no device of the callee is connected: unless
    /// the caller has a payload, no push can wake one.
    var callsOnlineOnly: Bool { isOnlineOnly || payload == nil }
}

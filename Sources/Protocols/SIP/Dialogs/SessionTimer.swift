internal import Core

/// When a session must be refreshed, and when it is dead (RFC 4028).
struct SessionTimer: Sendable {
    let seconds: UInt32
    let weRefresh: Bool
    /// The shortest interval that the peer accepts, if it has refused a shorter one.
    let least: UInt32?
    private let refreshAt: Instant?
    private let endAt: Instant

    /// Starts when a 2xx is sent or received (§7.2, §10).
    init(seconds: UInt32, weRefresh: Bool, at now: Instant) {
        self.seconds = seconds
        self.weRefresh = weRefresh
        least = nil
        let interval = Duration.seconds(Int64(seconds))
        // A session of days is refreshed as often as one of an hour.
        let pause = min(interval / 2, .seconds(Int64(SIPLimits.refreshSeconds)))
        refreshAt = weRefresh ? now.advanced(by: pause) : nil
        // The side that does not refresh gives up shortly before the end, so that its BYE still finds a dialog.
        endAt = now.advanced(by: weRefresh ? interval : interval - min(.seconds(32), interval / 3))
    }

    private init(_ timer: SessionTimer, least: UInt32? = nil, refreshAt: Instant?) {
        seconds = least ?? timer.seconds
        self.least = least ?? timer.least
        weRefresh = timer.weRefresh
        self.refreshAt = refreshAt
        endAt = timer.endAt
    }

    var deadline: Instant { min(refreshAt ?? endAt, endAt) }

    func isRefreshDue(at now: Instant) -> Bool { refreshAt.map { $0 <= now } ?? false }
    func isOver(at now: Instant) -> Bool { endAt <= now }
    /// Whether a refresh, or an offer instead of one, is in progress.
    var isRefreshing: Bool { weRefresh && refreshAt == nil }

    /// The same timer while a refresh is in progress.
    var refreshing: SessionTimer { SessionTimer(self, refreshAt: nil) }

    /// The same timer after a refresh that failed: it is tried again while the session lasts, after half of the
    /// remaining time and 32 s at most. With the interval that the peer asks for (422, RFC 4028 §7.3), if that is
    /// longer, it is tried within a second; but a peer that asks for ever longer intervals is not asked sooner for it.
    func refused(least: UInt32?, at now: Instant) -> SessionTimer {
        guard weRefresh else { return self }
        if let least, least > seconds, least <= SIPLimits.seconds {
            let pause = self.least == nil ? .seconds(1) : pause(at: now)
            return SessionTimer(self, least: least, refreshAt: now.advanced(by: pause))
        }
        return SessionTimer(self, refreshAt: now.advanced(by: pause(at: now)))
    }

    private func pause(at now: Instant) -> Duration {
        max(min(.seconds(32), now.duration(to: endAt) / 2), .seconds(1))
    }
}

/// The agreement of both sides (RFC 4028 §7 to §9).
struct SessionTerms: Equatable, Sendable {
    let expires: SessionExpires
    /// The peer must hold to it.
    let isRequired: Bool

    /// The answer to a request.
    ///
    /// - Returns: `nil` if there is to be no timer.
    static func answer(_ headers: SIPHeaders, wanted: UInt32?, shortest: UInt32) -> SessionTerms? {
        let isSupported = headers.has(option: "timer", in: "Supported") || headers.has(option: "timer", in: "Require")
        let floor = max(shortest, min(headers.number("Min-SE") ?? 90, SIPLimits.seconds))
        guard let asked = headers.sessionExpires else {
            guard let wanted else { return nil }
            return SessionTerms(
                expires: SessionExpires(seconds: max(wanted, floor), refresher: isSupported ? .uac : .uas),
                isRequired: isSupported)
        }
        let seconds = max(min(asked.seconds, wanted ?? asked.seconds), floor)
        let refresher = isSupported ? asked.refresher ?? .uac : .uas
        return SessionTerms(
            expires: SessionExpires(seconds: max(seconds, 90), refresher: refresher),
            isRequired: isSupported && refresher == .uac)
    }
}

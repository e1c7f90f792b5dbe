/// Direction of media, as seen from the side that writes it (RFC 3264 §5.1).
public enum MediaDirection: String, Equatable, Hashable, Sendable, CaseIterable {
    /// Both directions.
    case sendrecv
    /// It sends and does not listen.
    case sendonly
    /// It listens and does not send.
    case recvonly
    /// Neither, as on mutual hold; RTCP still flows.
    case inactive

    /// Whether media is sent.
    public var sends: Bool { self == .sendrecv || self == .sendonly }
    /// Whether media is received.
    public var receives: Bool { self == .sendrecv || self == .recvonly }

    /// Makes a direction of its two halves.
    public init(sends: Bool, receives: Bool) {
        self =
            switch (sends, receives) {
            case (true, true): .sendrecv
            case (true, false): .sendonly
            case (false, true): .recvonly
            case (false, false): .inactive
            }
    }

    /// The same flow seen from the other side.
    public var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }

    /// The direction that both allow.
    public func intersection(_ other: MediaDirection) -> MediaDirection {
        MediaDirection(sends: sends && other.sends, receives: receives && other.receives)
    }
}

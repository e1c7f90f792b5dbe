internal import Core

/// A header extension that we know (RFC 8285).
public enum RTPHeaderExtensionKind: String, Equatable, Hashable, Sendable, CaseIterable {
    /// How loud the packet's sound is (RFC 6464).
    case audioLevel = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
    /// When the packet left, in 24 bits.
    case absoluteSendTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
    /// A sequence number over all streams of the transport.
    case transportSequenceNumber =
        "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
    /// Name of the section that the stream belongs to (RFC 9143 §15).
    case mid = "urn:ietf:params:rtp-hdrext:sdes:mid"

    /// The number that we offer if it is free.
    var usualIdentifier: Int {
        switch self {
        case .audioLevel: 1
        case .absoluteSendTime: 2
        case .transportSequenceNumber: 3
        case .mid: 4
        }
    }
}

/// A header extension that both sides have.
public struct NegotiatedHeaderExtension: Equatable, Hashable, Sendable {
    /// Which.
    public var kind: RTPHeaderExtensionKind
    /// Its number in packets of both directions: 1…14, or up to 255 where only the two-byte form can carry it.
    public var identifier: UInt8
    /// Which packets may contain it: those we send, those we receive, or both.
    public var direction: MediaDirection

    /// Makes one.
    public init(kind: RTPHeaderExtensionKind, identifier: UInt8, direction: MediaDirection) {
        self.kind = kind
        self.identifier = identifier
        self.direction = direction
    }
}

/// The value of an `extmap` attribute (RFC 8285 §5).
struct ExtensionMap: Equatable {
    var identifier: UInt8
    var direction: MediaDirection
    var kind: RTPHeaderExtensionKind

    init(identifier: UInt8, direction: MediaDirection, kind: RTPHeaderExtensionKind) {
        self.identifier = identifier
        self.direction = direction
        self.kind = kind
    }

    /// Reads `1/sendonly URI …`; `nil` for extensions that we do not know and numbers that no packet can carry.
    init?(parsing value: String) {
        let fields = value.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count >= 2, let kind = RTPHeaderExtensionKind(rawValue: String(fields[1])) else { return nil }
        let parts = fields[0].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let number = Digits.number(parts[0], upTo: 255), number > 0, number != 15 else {
            return nil
        }
        var direction = MediaDirection.sendrecv
        if parts.count == 2 {
            guard let said = MediaDirection(rawValue: String(parts[1])) else { return nil }
            direction = said
        }
        self.init(identifier: UInt8(truncatingIfNeeded: number), direction: direction, kind: kind)
    }

    var attribute: SDPAttribute {
        let suffix = direction == .sendrecv ? "" : "/\(direction.rawValue)"
        return SDPAttribute("extmap", "\(identifier)\(suffix) \(kind.rawValue)")
    }
}

/// Settling header extensions.
enum ExtensionAgreement {
    /// What both have, in our order: the peer's number, its direction seen from here. Each kind and each number counts once.
    ///
    /// - Parameter offered: In an answer the numbers that we offered, which it must keep.
    static func common(
        _ view: SectionView, ours: [RTPHeaderExtensionKind], offered: [RTPHeaderExtensionKind: UInt8]? = nil
    ) -> [NegotiatedHeaderExtension] {
        var found: [NegotiatedHeaderExtension] = []
        for map in view.values("extmap").prefix(64).compactMap(ExtensionMap.init(parsing:)) {
            guard ours.contains(map.kind), map.direction != .inactive,
                !found.contains(where: { $0.kind == map.kind || $0.identifier == map.identifier })
            else { continue }
            if let offered, offered[map.kind] != map.identifier { continue }
            found.append(.init(kind: map.kind, identifier: map.identifier, direction: map.direction.reversed))
        }
        return ours.compactMap { kind in found.first { $0.kind == kind } }
    }

    /// Numbers for our offer: those agreed before stay.
    static func numbers(
        for kinds: [RTPHeaderExtensionKind], agreed: [RTPHeaderExtensionKind: UInt8]
    ) -> [RTPHeaderExtensionKind: UInt8] {
        var numbers = agreed
        for kind in kinds where numbers[kind] == nil {
            let taken = Set(numbers.values)
            let candidates = [UInt8(kind.usualIdentifier)] + Array(1...14)
            numbers[kind] = candidates.first { !taken.contains($0) }
        }
        return numbers
    }
}

internal import Core

/// One `m=` line and what follows it (RFC 8866 §5.14).
public struct MediaSection: Equatable, Sendable {
    /// `audio`, `video`, `application` and so on.
    public var kind: String
    /// 0…65535; 0 in an answer refuses the section.
    public var port: Int
    /// Number behind the port's slash, if there is one.
    public var portCount: Int?
    /// Transport and profile, such as `RTP/SAVP`.
    public var profile: String
    /// Payload types of RTP, the preferred one first.
    public var formats: [String]
    /// Address for this section's media, if it differs from the session's.
    public var connection: ConnectionAddress?
    /// Lines that we keep and do not read: `i b k`, in their order.
    public var otherLines: [SessionDescription.Line]
    /// Attributes of this section.
    public var attributes: [SDPAttribute]

    /// Makes a section without attributes.
    public init(kind: String, port: Int, profile: String, formats: [String]) {
        self.kind = kind
        self.port = port
        self.profile = profile
        self.formats = formats
        portCount = nil
        connection = nil
        otherLines = []
        attributes = []
    }
}

extension MediaSection: CustomReflectable {
    /// Shows attributes without their secrets.
    public var customMirror: Mirror {
        Mirror(self, children: ["kind": kind, "port": port, "profile": profile, "attributes": attributes])
    }
}

/// Attributes with a meaning, parsed on demand; an unreadable value counts as absent.
extension MediaSection {
    /// Direction, if the section has one.
    public var direction: MediaDirection? { attributes.direction }

    /// Length of a packet that the writer wants to receive, in milliseconds (RFC 8866 §6.4).
    public var packetTimeMilliseconds: Int? { attributes.value("ptime").flatMap(Self.milliseconds) }

    /// Longest packet that the writer takes, in milliseconds (RFC 8866 §6.5).
    public var maximumPacketTimeMilliseconds: Int? { attributes.value("maxptime").flatMap(Self.milliseconds) }

    /// RTP and RTCP may share one port (RFC 5761 §5.1.1).
    public var offersRTCPMux: Bool { attributes.has("rtcp-mux") || attributes.has("rtcp-mux-only") }

    /// Name of the section for grouping (RFC 5888).
    public var mid: String? { attributes.value("mid") }

    /// Certificate fingerprints for DTLS (RFC 8122), as text.
    public var fingerprints: [String] { attributes.values("fingerprint") }

    /// The DTLS role (RFC 4145), as text.
    public var setup: String? { attributes.value("setup") }

    /// ICE user name fragment (RFC 8839 §5.4).
    public var iceUsernameFragment: String? { attributes.value("ice-ufrag") }

    /// ICE candidates (RFC 8839 §5.1), as text.
    public var candidates: [String] { attributes.values("candidate") }

    /// The `rtpmap` of a payload type.
    public func rtpMap(_ payloadType: Int) -> RTPMap? {
        for value in attributes.values("rtpmap") {
            if let map = RTPMap(parsing: value), map.payloadType == payloadType { return map }
        }
        return nil
    }

    /// The format parameters of a payload type, as text.
    public func formatParameters(_ payloadType: Int) -> String? {
        for value in attributes.values("fmtp") {
            let fields = value.split(separator: " ", maxSplits: 1)
            if let first = fields.first, Digits.number(first, upTo: 127) == payloadType {
                return fields.count > 1 ? String(fields[1]) : ""
            }
        }
        return nil
    }

    /// Address for RTCP, if it is not the port after RTP's (RFC 3605).
    public var rtcpEndpoint: (port: Int, address: ConnectionAddress?)? {
        guard let value = attributes.value("rtcp") else { return nil }
        let fields = value.split(separator: " ", maxSplits: 1)
        guard let first = fields.first, let port = Digits.number(first, upTo: 65_535), port > 0 else { return nil }
        return (port, fields.count > 1 ? ConnectionAddress(parsing: fields[1]) : nil)
    }

    /// The sources that are announced, in their order, and the canonical name of the first (RFC 5576).
    public var sources: (ssrcs: [UInt32], canonicalName: String?) {
        var ssrcs: [UInt32] = []
        var name: String?
        for value in attributes.values("ssrc").prefix(64) {
            let fields = value.split(separator: " ", maxSplits: 1)
            guard let first = fields.first, let number = Digits.number(first, upTo: UInt64(UInt32.max)) else {
                continue
            }
            let ssrc = UInt32(truncatingIfNeeded: number)
            if !ssrcs.contains(ssrc) { ssrcs.append(ssrc) }
            let isFirst = ssrc == ssrcs.first
            if isFirst, name == nil, fields.count > 1, fields[1].hasPrefix("cname:") {
                name = String(fields[1].dropFirst(6))
            }
        }
        return (ssrcs, name)
    }

    /// The usable among the `crypto` lines, in their order (RFC 4568).
    public var cryptoAttributes: [CryptoAttribute] {
        attributes.values("crypto").compactMap { value in
            do throws(CryptoAttribute.ParseError) { return try CryptoAttribute(parsing: value) } catch { return nil }
        }
    }

    private static func milliseconds(_ text: String) -> Int? {
        // Some peers write fractions ("ptime:20.0"); Opus uses whole milliseconds only.
        let whole = text.prefix { $0 != "." }
        return Digits.number(whole, upTo: 1_000).flatMap { $0 > 0 ? $0 : nil }
    }
}

internal import Core

/// The bitrate of payloads that the peer's `b=` lines (RFC 8866 §5.8) permit.
///
/// Of the kinds there are, `TIAS` (RFC 3890) and `AS` count. `CT` does not, because its meaning for a single section is
/// not defined (RFC 9429 §5.10); nor do `RS` and `RR`, which are about RTCP, and unknown kinds.
enum BandwidthLimit {
    /// Bytes of headers in each packet: IPv4, UDP and RTP, as RFC 9429 §5.10 has them.
    private static let headerBytes = 40

    /// Far above any call; what is beyond limits nothing.
    private static let maximumKilobits = 100_000_000

    /// The highest bitrate that the peer is willing to receive in a section, in bits per second of payloads; 0 if
    /// nothing is to be sent (RFC 3264 §5.1), `nil` without a limit.
    ///
    /// Both the section's limit and the session's apply, so the lower counts. Unreadable values count as absent.
    static func payloadBitrate(_ view: SectionView, packetTimeMilliseconds: Int) -> Int? {
        let levels = [view.section.otherLines, view.description.otherLines]
        return levels.compactMap { limit(in: $0, packetTimeMilliseconds) }.min()
    }

    /// `TIAS` counts payloads alone, and so has priority over `AS`, which includes headers and RTCP: RFC 9429 §5.10
    /// subtracts 5 % for RTCP, and the headers of 50 packets a second; here, the headers of as many packets as are
    /// sent.
    private static func limit(in lines: [SessionDescription.Line], _ packetTimeMilliseconds: Int) -> Int? {
        if let exact = value("TIAS", in: lines, upTo: maximumKilobits * 1_000) { return exact }
        guard let whole = value("AS", in: lines, upTo: maximumKilobits) else { return nil }
        let headers = headerBytes * 8 * 1_000 / max(1, packetTimeMilliseconds)
        // A low limit is not zero: only a written zero stops the sender.
        return whole == 0 ? 0 : max(1, whole * 950 - headers)
    }

    /// The lowest value of a kind, in the unit of that kind.
    private static func value(_ kind: String, in lines: [SessionDescription.Line], upTo limit: Int) -> Int? {
        let values = lines.lazy.filter { $0.type == "b" }.prefix(64).compactMap { line -> Int? in
            let fields = line.value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard fields.count == 2, fields[0] == kind else { return nil }
            return Digits.number(fields[1], upTo: limit)
        }
        return values.min()
    }
}

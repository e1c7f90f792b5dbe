/// One section of a description, with values that it lacks taken from the session, or from the section whose transport
/// it shares (RFC 9143 §7, RFC 8859).
struct SectionView {
    let section: MediaSection
    let description: SessionDescription
    /// The first section of the bundle, whose transport all of the bundle use; `nil` if that is this one.
    let transport: MediaSection?

    init(_ section: MediaSection, of description: SessionDescription) {
        self.section = section
        self.description = description
        let group = section.mid.flatMap { description.bundle(with: $0) }
        let tagged = group?.first.flatMap { first in description.media.first { $0.mid == first } }
        transport = tagged?.mid == section.mid ? nil : tagged
    }

    /// The section is offered; its port is zero only because it is bundled with another (RFC 9143 §6).
    var isOffered: Bool {
        section.port != 0
            || (section.attributes.has("bundle-only") && section.mid.flatMap { description.bundle(with: $0) } != nil)
    }

    /// The section's value, or else the session's.
    func values(_ name: String) -> [String] {
        let own = section.attributes.values(name)
        return own.isEmpty ? description.attributes.values(name) : own
    }

    /// The same for values of the transport, which the first section of a bundle gives for all.
    func transportValues(_ name: String) -> [String] {
        let own = values(name)
        return own.isEmpty ? transport?.attributes.values(name) ?? [] : own
    }

    func transportValue(_ name: String) -> String? { transportValues(name).first }

    func transportHas(_ name: String) -> Bool { !transportValues(name).isEmpty }

    var offersRTCPMux: Bool { transportHas("rtcp-mux") || transportHas("rtcp-mux-only") }
}

extension SessionDescription {
    /// Whether an audio section is offered with ICE and one port for RTP and RTCP, so that the answer has ICE, too.
    /// Sections of other kinds do not count, unless they carry the audio.
    public var offersMuxedICE: Bool {
        media.contains { section in
            guard section.kind == "audio" else { return false }
            let view = SectionView(section, of: self)
            return view.isOffered && view.transportHas("ice-ufrag") && view.offersRTCPMux
        }
    }

    /// The names of the bundle that the named section is in (RFC 9143 §5), in their order.
    func bundle(with mid: String) -> [String]? {
        for value in attributes.values("group") {
            let fields = value.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
            if fields.first == "BUNDLE", fields.dropFirst().contains(mid) { return Array(fields.dropFirst()) }
        }
        return nil
    }
}

/// A peer's text in a message: shortened, because it goes into logs, by scalars, because a character may have any number of them.
func quoted(_ text: some StringProtocol) -> String {
    "\"\(String(String.UnicodeScalarView(text.unicodeScalars.prefix(40))))\""
}

internal import Core

/// The payload types that two descriptions have in common.
struct FormatAgreement {
    /// Codecs that may come and go, the one to send with first.
    var codecs: [NegotiatedCodec]
    /// The peer's Opus parameters; the defaults if Opus is not among the codecs.
    var remoteOpus = OpusParameters()
    var redundancy: PayloadTypes?
    var comfortNoise: PayloadTypes?
    var telephoneEvents: [NegotiatedTelephoneEvents] = []
    /// Our numbers, with those of the peer's offer taken over.
    var numbering: PayloadNumbering

    /// The formats of our answer: the first of our codecs that the offer has, and its companions, under the offer's
    /// numbers.
    static func choose(
        _ view: SectionView, local: LocalMedia, numbering: PayloadNumbering
    ) throws(NegotiationError) -> FormatAgreement {
        let theirs = formats(view.section) { _ in nil }
        for codec in local.codecs {
            guard let number = theirs.first(where: { $0.format == .codec(codec) })?.number else { continue }
            var agreement = FormatAgreement(codecs: [], numbering: numbering)
            agreement.codecs = [.init(codec: codec, payloadTypes: both(number))]
            agreement.numbering.set(number, for: .codec(codec))
            agreement.addCompanions(of: [codec], theirs, view.section, local) { _, number in number }
            return agreement
        }
        throw nothingInCommon(view.section, local)
    }

    /// The formats of the peer's answer: those of the offer that the peer kept, in its order.
    static func accept(
        _ view: SectionView, local: LocalMedia, numbering: PayloadNumbering
    ) throws(NegotiationError) -> FormatAgreement {
        // An answer may omit the map of a number that our offer defined.
        let theirs = formats(view.section) { numbering.format($0) }
        var agreement = FormatAgreement(codecs: [], numbering: numbering)
        for (number, format) in theirs {
            guard case .codec(let codec) = format, local.codecs.contains(codec),
                let ours = numbering[format], !agreement.codecs.contains(where: { $0.codec == codec })
            else { continue }
            agreement.codecs.append(.init(codec: codec, payloadTypes: pair(send: number, receive: ours)))
        }
        guard !agreement.codecs.isEmpty else { throw nothingInCommon(view.section, local) }
        agreement.addCompanions(of: agreement.codecs.map(\.codec), theirs, view.section, local) { format, _ in
            numbering[format]
        }
        return agreement
    }

    /// Parameters of Opus, and the formats that are not codecs.
    ///
    /// - Parameter receive: Our number for a format and the peer's number; `nil` if we did not offer the format.
    private mutating func addCompanions(
        of codecs: [AudioCodec], _ theirs: [(number: Int, format: AudioFormat)], _ section: MediaSection,
        _ local: LocalMedia, receive: (AudioFormat, Int) -> Int?
    ) {
        if let opus = self.codecs.first(where: { $0.codec == .opus }) {
            remoteOpus = OpusParameters(parsing: section.formatParameters(Int(opus.payloadTypes.send)) ?? "")
        }
        for (number, format) in theirs {
            guard let ours = receive(format, number) else { continue }
            let types = Self.pair(send: number, receive: ours)
            switch format {
            case .codec: continue
            case .redundancy:
                guard local.usesRedundancy, redundancy == nil, isRedundantOpus(section, number) else { continue }
                redundancy = types
            case .comfortNoise:
                let hasG711 = codecs.contains(.pcmu) || codecs.contains(.pcma)
                guard local.usesComfortNoise, comfortNoise == nil, hasG711 else { continue }
                comfortNoise = types
            case .telephoneEvents(let rate):
                guard local.telephoneEvents != nil, !telephoneEvents.contains(where: { $0.clockRate == rate }) else {
                    continue
                }
                let events = section.formatParameters(number) ?? ""
                telephoneEvents.append(
                    .init(clockRate: rate, payloadTypes: types, remoteEvents: events.isEmpty ? "0-15" : events))
            }
            numbering.set(ours, for: format)
        }
    }

    /// Redundancy carries what its parameters name, block for block (RFC 2198 §5); without any, the preferred codec.
    private func isRedundantOpus(_ section: MediaSection, _ number: Int) -> Bool {
        guard let opus = codecs.first(where: { $0.codec == .opus })?.payloadTypes else { return false }
        let blocks = (section.formatParameters(number) ?? "").split(separator: "/")
        return blocks.allSatisfy { Digits.number($0, upTo: 127) == Int(opus.send) }
    }

    /// The formats of a section that we know, in its order.
    ///
    /// - Parameter offered: The meaning of a number without a map; numbers with an assigned meaning need none.
    private static func formats(
        _ section: MediaSection, offered: (Int) -> AudioFormat?
    ) -> [(number: Int, format: AudioFormat)] {
        var found: [(number: Int, format: AudioFormat)] = []
        for text in section.formats.prefix(128) {
            guard let number = Digits.number(text, upTo: 127) else { continue }
            let format = section.rtpMap(number).map(AudioFormat.init) ?? assigned(number) ?? offered(number)
            if let format { found.append((number, format)) }
        }
        return found
    }

    /// Numbers that mean the same everywhere (RFC 3551 §6).
    private static func assigned(_ number: Int) -> AudioFormat? {
        switch number {
        case 0: .codec(.pcmu)
        case 8: .codec(.pcma)
        case 13: .comfortNoise
        default: nil
        }
    }

    private static func both(_ number: Int) -> PayloadTypes { pair(send: number, receive: number) }

    private static func pair(send: Int, receive: Int) -> PayloadTypes {
        PayloadTypes(send: UInt8(truncatingIfNeeded: send), receive: UInt8(truncatingIfNeeded: receive))
    }

    private static func nothingInCommon(_ section: MediaSection, _ local: LocalMedia) -> NegotiationError {
        let names = section.formats.prefix(128).compactMap { text in
            Digits.number(text, upTo: 127).flatMap { number in
                section.rtpMap(number)?.encoding ?? assigned(number)?.map(number).encoding
            }
        }
        let listed = names.isEmpty ? "" : " It has \(names.prefix(8).joined(separator: ", ").prefix(120))."
        let ours = local.codecs.map(\.label).joined(separator: " or ")
        return NegotiationError(.noCommonCodec, "No common codec: the peer has no \(ours).\(listed)")
    }
}

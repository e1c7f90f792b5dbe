import Foundation
import SDP

/// Two ends of a call over ICE and DTLS, with what tests ask of them.
enum Sides {
    static let ourFingerprint = Fingerprint(algorithm: "sha-256", bytes: (0..<32).map { UInt8($0) })
    static let theirFingerprint = Fingerprint(algorithm: "sha-256", bytes: (0..<32).map { UInt8(255 - $0) })

    static func ice(_ name: String, candidates: [String] = []) -> LocalICE {
        LocalICE(usernameFragment: "\(name)Frag", password: "\(name)0123456789012345678901", candidates: candidates)
    }

    static func media(
        _ name: String = "us", fingerprint: Fingerprint = ourFingerprint, ssrc: UInt32 = 77,
        change: (inout LocalMedia) -> Void = { _ in }
    ) -> LocalMedia {
        var media = LocalMedia(
            ice: ice(name), ssrc: ssrc, canonicalName: name, sessionID: UInt64(ssrc),
            keying: [.dtls(fingerprints: [fingerprint])])
        change(&media)
        return media
    }

    static func peer(change: (inout LocalMedia) -> Void = { _ in }) -> LocalMedia {
        media("them", fingerprint: theirFingerprint, ssrc: 88, change: change)
    }

    /// What goes over the wire: written and read again.
    static func sent(_ description: SessionDescription) throws -> SessionDescription {
        try SessionDescription(parsing: description.serialized())
    }

    /// `offerer` offers, `answerer` answers, both through text.
    @discardableResult
    static func exchange(
        _ offerer: inout OfferAnswer, _ answerer: inout OfferAnswer
    ) throws -> (offer: SessionDescription, answer: SessionDescription, ours: NegotiatedAudio, theirs: NegotiatedAudio)
    {
        let offer = try sent(offerer.makeOffer())
        let (answer, theirs) = try answerer.makeAnswer(to: offer)
        let received = try sent(answer)
        return (offer, received, try offerer.accept(answer: received), theirs)
    }

    static func error(_ body: () throws -> Void) -> NegotiationError? {
        do {
            try body()
            return nil
        } catch {
            return error as? NegotiationError
        }
    }
}

/// Descriptions that others have made.
enum Vectors {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Vectors/SDP")

    static var names: [String] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".sdp") }.sorted()
    }

    static func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: folder.appendingPathComponent(name)), as: UTF8.self)
    }

    static func description(_ name: String) throws -> SessionDescription {
        try SessionDescription(parsing: text(name))
    }
}

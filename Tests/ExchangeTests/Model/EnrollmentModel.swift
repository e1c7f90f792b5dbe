import Enrollment
import Core

@testable import ExchangeCore

/// Attackers who guess the codes by which the correct clients' devices join, at the same addresses as those and elsewhere.
struct EnrollmentModel {
    static let codes = [
        "grace": EnrollmentSecret("GRAC-E000-1111-2222-3333"), "henry": EnrollmentSecret("HENR-Y000-1111-2222-3333"),
    ].compactMapValues(\.self)
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    private static let addresses = (1...9).compactMap { ClientAddress("192.0.2.\($0)") }

    private var judge = EnrollmentGuard()
    /// What becomes of codes of which nothing is right: of others the same must become.
    private var blind = EnrollmentGuard()
    /// When devices have come with the right codes, by whose they are.
    private var joined: [String: [Instant]] = [:]

    /// Some guess, and now and then the right device comes.
    mutating func step(_ directory: AccountDirectory, _ wire: inout WireGenerator, _ oracle: Oracle) throws {
        let now = oracle.now
        guard let address = wire.pick(Self.addresses) else { return }
        if wire.chance(10), let user = wire.pick(Self.codes.keys.sorted()), let code = Self.codes[user] {
            let recent = (joined[user] ?? []).filter { now < $0.advanced(by: .seconds(600)) }
            joined[user] = recent + [now]
            guard recent.count < EnrollmentGuard.perCode else { return }
            oracle.count("joined")
            let verdict = judge.judge(code, of: directory, from: address, at: now)
            return try oracle.require(verdict == .known, "\(user)'s device does not join: \(verdict)")
        }
        for _ in 0..<wire.number(1...40) {
            guard let guess = guess(&wire), !Self.codes.values.contains(guess) else { continue }
            let verdict = judge.judge(guess, of: directory, from: address, at: now)
            let expected = blind.judge(guess, of: AccountDirectory([]), from: address, at: now)
            if case .wait = verdict { oracle.count("guess refused") } else { oracle.count("guess") }
            try oracle.require(verdict == expected, "a guess is answered \(verdict), and a blind one \(expected)")
        }
    }

    /// A code that begins as a right one, or is one but for a character, or is any.
    private func guess(_ wire: inout WireGenerator) -> EnrollmentSecret? {
        let right = Self.codes.values.sorted { $0.characters < $1.characters }
        var characters = Array(wire.pick(right)?.characters ?? "")
        let kept = wire.pick([0, 3, 4, 5, 19]) ?? 0
        for index in characters.indices.dropFirst(kept) { characters[index] = wire.pick(Self.alphabet) ?? "0" }
        return EnrollmentSecret(String(characters))
    }
}

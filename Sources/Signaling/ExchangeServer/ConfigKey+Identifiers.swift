import ConfigReader
import ExchangeCore
import SignalWire

extension ConfigKey {
    /// A name.
    static func identifier<Kind>(_ name: String, _ text: String) -> Self where Value == Identifier<Kind> {
        .parsed(name, "name", text) { text throws(ConfigValueFault) in try parse(text) }
    }

    /// The names in a list.
    static func identifiers<Kind>(_ name: String, _ text: String) -> Self where Value == [Identifier<Kind>] {
        .list(name, of: "names", text) { text throws(ConfigValueFault) in try parse(text) }
    }

    private static func parse<Kind>(_ text: String) throws(ConfigValueFault) -> Identifier<Kind> {
        do throws(IdentifierFault) {
            return try Identifier(text)
        } catch {
            throw ConfigValueFault("\(error)")
        }
    }

    /// The hash of a secret.
    static func digest(_ name: String, _ text: String) -> Self where Value == SecretDigest {
        .parsed(name, "SHA-256, hexadecimal", text) { text throws(ConfigValueFault) in try parseDigest(text) }
    }

    /// The hashes of secrets.
    static func digests(_ name: String, _ text: String) -> Self where Value == [SecretDigest] {
        .list(name, of: "SHA-256, hexadecimal", text) { text throws(ConfigValueFault) in try parseDigest(text) }
    }

    private static func parseDigest(_ text: String) throws(ConfigValueFault) -> SecretDigest {
        guard let digest = SecretDigest(hex: text) else {
            throw ConfigValueFault("must be a SHA-256 digest: 64 hexadecimal digits")
        }
        return digest
    }
}

extension KeyedSection {
    /// The digests under `hashes`, and that of `secret` if it is given.
    func digests(
        _ hashes: KeyPath<Keys, ConfigKey<[SecretDigest]>>, _ secret: KeyPath<Keys, ConfigKey<Secret>>,
        _ problems: inout [ConfigProblem]
    ) -> [SecretDigest] {
        let listed = value(hashes, &problems) ?? []
        return listed + (value(secret, &problems).map { [SecretDigest(of: $0.revealed)] } ?? [])
    }
}

extension CardDirectory {
    /// Whether both names are known to mean the same PCM: the same name, or the same device of the same card.
    ///
    /// A name that libasound's configuration defines ("default", "pulse") equals only itself; the PCM behind it is not
    /// looked up.
    public func isSamePCM(_ one: String, _ other: String) -> Bool {
        if one == other { return true }
        guard let first = place(of: one), let second = place(of: other) else { return false }
        return first == second
    }

    /// The name for people of the card that a PCM's name means; nil of one that names no card, such as "default".
    public func cardName(of name: String) -> String? {
        place(of: name).flatMap { place in cards.first { $0.number == place.card }?.name }
    }

    /// A PCM's name, and behind it that of its card if it names one.
    public func label(of name: String) -> String { name + (cardName(of: name).map { ": \($0)" } ?? "") }

    private struct Place: Equatable {
        var card: Int
        var device: Int
    }

    /// Kinds of PCM that are a card's device, directly or through a converter or mixer.
    private static let kinds: Set<Substring> = ["hw", "plughw", "dmix", "dsnoop", "sysdefault", "default", "front"]

    /// The card and the device that a name means; nil of one that names no card.
    private func place(of name: String) -> Place? {
        guard let plain = pcmName(for: name, lastSeen: nil) else { return nil }
        var text = Substring(plain)
        if text.hasPrefix("plug:") { text = text.dropFirst(5) }
        text = text.filter { $0 != "'" && $0 != "\"" }[...]
        guard let colon = text.firstIndex(of: ":"), Self.kinds.contains(text[..<colon]) else { return nil }
        var card: Substring?
        var device = 0
        for (index, argument) in text[text.index(after: colon)...].split(separator: ",").enumerated() {
            let parts = argument.split(separator: "=", maxSplits: 1)
            switch (parts.count, parts.first) {
            case (2, "CARD"): card = parts[1]
            case (2, "DEV"): device = Int(parts[1]) ?? 0
            case (1, _) where index == 0: card = argument
            case (1, _) where index == 1: device = Int(argument) ?? 0
            default: break
            }
        }
        guard let card else { return nil }
        let number = Int(card) ?? cards.first { $0.id == card }?.number
        return number.map { Place(card: $0, device: device) }
    }
}

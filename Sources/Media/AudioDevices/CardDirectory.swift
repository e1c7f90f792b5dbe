internal import Realtime
internal import Glibc

/// Where a card was found, to be found again under another number.
struct CardHome: Equatable, Sendable {
    /// As in ``CardDirectory/Card/identities``, the best first.
    var identities: [String]
    var device: Int
}

/// The sound cards that the kernel knows, and their names, which do not change with their numbers.
public struct CardDirectory: Sendable {
    /// A card.
    public struct Card: Equatable, Sendable {
        /// Its number, which depends on the order in which cards were found.
        public var number: Int
        /// Its short name, which is its own unless another of the same kind was first.
        public var id: String
        /// Its name for people.
        public var name: String
        /// Names that stay its own, the best first: "by-id/…" with maker, kind and serial number, "by-path/…" with the
        /// socket that it is plugged into, "hw:CARD=…" with its short name.
        public var identities: [String]
    }

    private let root: String

    /// - Parameter root: Where /proc and /dev are; empty except in tests.
    public init(root: String = "") { self.root = root }

    /// All cards, in the order of their numbers.
    public var cards: [Card] {
        let links = ["by-id", "by-path"].flatMap { folder in
            Self.entries(of: "\(root)/dev/snd/\(folder)").sorted().compactMap { name -> (Int, String)? in
                Self.cardNumber(linkedFrom: "\(root)/dev/snd/\(folder)/\(name)").map { ($0, "\(folder)/\(name)") }
            }
        }
        return Self.parse(KernelFile.text(of: "\(root)/proc/asound/cards") ?? "").map { card in
            var card = card
            card.identities = links.filter { $0.0 == card.number }.map(\.1) + ["hw:CARD=\(card.id)"]
            return card
        }
    }

    /// The names of all cards, as a sentence for an error that names one which is not there.
    public var summary: String {
        let cards = cards.compactMap { card in card.identities.first.map { "\($0) (\(card.name))" } }
        return cards.isEmpty
            ? "This machine has no sound card." : "Cards of this machine: \(cards.joined(separator: ", "))."
    }

    /// The sources of libasound's list of PCMs, to notice that a card came or went or that its configuration was
    /// edited.
    struct Surroundings: Equatable, Sendable {
        fileprivate var cards: String
        fileprivate var devices: [String]
        fileprivate var configuration: ConfigurationStamps
    }

    /// The cards and the configuration now. The nodes of a card that was plugged in come after the card.
    var surroundings: Surroundings {
        Surroundings(
            cards: KernelFile.text(of: "\(root)/proc/asound/cards") ?? "",
            devices: Self.entries(of: "\(root)/dev/snd").sorted(),
            configuration: ConfigurationStamps(root: root))
    }

    /// The name under which libasound finds the PCM that `name` means now; nil if its card is not there.
    func pcmName(for name: String, lastSeen home: CardHome?) -> String? {
        if name.hasPrefix("by-id/") || name.hasPrefix("by-path/") {
            let parts = name.split(separator: ",", maxSplits: 1)
            let device = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
            guard let identity = parts.first.map(String.init),
                let card = cards.first(where: { $0.identities.contains(identity) })
            else { return nil }
            return "plughw:\(card.number),\(device)"
        }
        guard let home, let kind = Self.numberedKind(name) else { return name }
        // By number it would be whichever card came first; it is the one that was there before.
        for identity in home.identities {
            if let card = cards.first(where: { $0.identities.contains(identity) }) {
                return "\(kind):\(card.number),\(home.device)"
            }
        }
        return nil
    }

    /// Where the card with this number is found.
    func home(ofCard number: Int, device: Int) -> CardHome? {
        cards.first { $0.number == number }.map { CardHome(identities: $0.identities, device: device) }
    }

    /// "hw" or "plughw" of a PCM that is named with a card's number.
    private static func numberedKind(_ name: String) -> String? {
        for kind in ["hw", "plughw"] where name.hasPrefix(kind + ":") {
            if name.dropFirst(kind.count + 1).first?.isNumber == true { return kind }
        }
        return nil
    }

    /// Reads /proc/asound/cards: " 1 [Headset        ]: USB-Audio - Plantronics C320", and a line with more.
    private static func parse(_ text: String) -> [Card] {
        text.split(separator: "\n").compactMap { line in
            guard let open = line.firstIndex(of: "["), let close = line[open...].firstIndex(of: "]"),
                let number = Int(line[..<open].filter { $0 != " " })
            else { return nil }
            let id = line[line.index(after: open)..<close].trimmed
            let dash = line[close...].firstIndex(of: "-").map { line[$0...] } ?? ""
            // The driver's kind may contain a dash; the separator has spaces around it.
            let name = line[close...].separated(by: " - ") ?? dash.dropFirst().trimmed
            return Card(number: number, id: id, name: name, identities: [])
        }
    }

    /// The number of the card whose control device, "controlC1", a link leads to.
    private static func cardNumber(linkedFrom path: String) -> Int? {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            guard let base = buffer.baseAddress else { return -1 }
            return unsafe readlink(path, base.assumingMemoryBound(to: CChar.self), buffer.count)
        }
        guard count > 0 else { return nil }
        let target = String(decoding: bytes.prefix(count), as: UTF8.self)
        guard let name = target.split(separator: "/").last, name.hasPrefix("controlC") else { return nil }
        return Int(name.dropFirst("controlC".count))
    }

    static func entries(of folder: String) -> [String] {
        guard let directory = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { field in
                unsafe String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names
    }
}

extension Substring {
    /// Without spaces at either end.
    fileprivate var trimmed: String {
        var text = self
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return String(text)
    }

    /// What follows the first `separator`.
    fileprivate func separated(by separator: String) -> String? {
        var rest = self
        while !rest.isEmpty {
            if rest.hasPrefix(separator) { return rest.dropFirst(separator.count).trimmed }
            rest.removeFirst()
        }
        return nil
    }
}

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

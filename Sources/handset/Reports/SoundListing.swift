internal import AudioDevices

/// The list of sound cards, to read and to parse.
struct SoundListing {
    let cards: [CardDirectory.Card]
    let entries: [SoundCatalogue.Entry]

    var text: String {
        let style = TerminalStyle.standardOutput
        var lines: [String] = []
        lines.append(style.bold(cards.isEmpty ? "No sound card is known to the kernel." : "Cards"))
        for card in cards {
            lines.append("  \(card.number)  \(card.name)")
            // The best name last seen first: what to put into a configuration.
            for identity in card.identities { lines.append("     \(style.dim(identity))") }
        }
        lines.append("")
        lines.append(style.bold(entries.isEmpty ? "libasound has nothing to open." : "Names that libasound opens"))
        for entry in entries {
            lines.append("  \(style.bold(entry.name))  \(entry.description)")
            for ability in entry.abilities { lines.append("     " + Self.text(ability)) }
        }
        if cards.isEmpty {
            lines.append("")
            lines.append(
                "Plug one in; a device runs without any, and uses it once it is there. In a container, hand /dev/snd in."
            )
        }
        return lines.joined(separator: "\n")
    }

    private static func text(_ ability: SoundCatalogue.Ability) -> String {
        let direction = "\(ability.direction)".padded(to: 10)
        if let failure = ability.failure { return direction + "\(failure)" }
        var parts: [String] = []
        if let rates = ability.rates {
            parts.append(rates.count == 1 ? "\(rates.lowerBound) Hz" : "\(rates.lowerBound)–\(rates.upperBound) Hz")
        }
        if let channels = ability.channels {
            let many = channels.count == 1 ? "\(channels.lowerBound)" : "\(channels.lowerBound)–\(channels.upperBound)"
            parts.append("\(many) ch")
        }
        parts.append(ability.formats.isEmpty ? "no format that fits" : ability.formats.joined(separator: " "))
        if let period = ability.shortestPeriodMilliseconds {
            parts.append("period from \(period.rounded(toPlaces: 2)) ms")
        }
        return direction + parts.joined(separator: ", ")
    }

    var json: String {
        var object = JSONObjectText()
        object.add(
            "cards",
            objects: cards.map { card in
                var object = JSONObjectText()
                object.add("number", Double(card.number))
                object.add("id", card.id)
                object.add("name", card.name)
                object.add("identities", texts: card.identities)
                return object
            })
        object.add("names", objects: entries.map(Self.object))
        return object.text
    }

    private static func object(_ entry: SoundCatalogue.Entry) -> JSONObjectText {
        var object = JSONObjectText()
        object.add("name", entry.name)
        object.add("description", entry.description)
        for direction in SoundDirection.allCases {
            guard let ability = entry.abilities.first(where: { $0.direction == direction }) else { continue }
            var part = JSONObjectText()
            part.add("rate_min", ability.rates.map { Double($0.lowerBound) })
            part.add("rate_max", ability.rates.map { Double($0.upperBound) })
            part.add("channels_min", ability.channels.map { Double($0.lowerBound) })
            part.add("channels_max", ability.channels.map { Double($0.upperBound) })
            part.add("formats", texts: ability.formats)
            part.add("shortest_period_ms", ability.shortestPeriodMilliseconds)
            part.add("error", ability.failure.map { "\($0)" })
            object.add("\(direction)", object: part)
        }
        return object
    }
}

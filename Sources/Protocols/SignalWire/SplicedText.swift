/// JSON objects some of whose members are text already: what is kept as text is not read to be written again.
///
/// Reading and writing JSON costs many times what copying it does, and a list of small numbers many times as much again.
enum SplicedText {
    /// Puts members first into the object that begins at the end of `start`.
    ///
    /// - Parameters:
    ///   - object: JSON text that begins with `start`, whose last character opens an object with at least one member.
    ///   - members: Names that need no escapes, with JSON text; those without text are left out.
    static func text(_ object: [UInt8], after start: String = "{", _ members: KeyValuePairs<String, String?>) -> String
    {
        precondition(object.starts(with: start.utf8), "the object begins elsewhere")
        var text = start
        text.reserveCapacity(object.count + members.reduce(0) { $0 + ($1.value?.utf8.count ?? 0) + 16 })
        for (name, value) in members {
            if let value { text += #""\#(name)":\#(value),"# }
        }
        text += String(decoding: object.dropFirst(start.utf8.count), as: UTF8.self)
        return text
    }
}

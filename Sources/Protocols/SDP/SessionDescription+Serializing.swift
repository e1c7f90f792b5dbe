extension SessionDescription {
    /// The text to send, keys and passwords included: lines in RFC 8866's order, each ended by CR LF.
    public func serialized() -> String {
        text { attribute in
            attribute.value.map { "a=\(attribute.name):\($0)" } ?? "a=\(attribute.name)"
        }
    }

    func text(_ attributeLine: (SDPAttribute) -> String) -> String {
        var text = LineWriter()
        let maker = "\(origin.username) \(origin.sessionID) \(origin.version) \(origin.address.text)"
        text.append("v=0")
        text.append("o=\(maker)")
        text.append("s=\(name.isEmpty ? "-" : name)")
        text.append(otherLines, of: "iuep")
        if let connection { text.append("c=\(connection.text)") }
        text.append(otherLines, of: "b")
        for time in times { text.append("t=\(time)") }
        text.append(otherLines, of: "rzk")
        for attribute in attributes { text.append(attributeLine(attribute)) }
        for section in media {
            let count = section.portCount.map { "/\($0)" } ?? ""
            let formats = section.formats.joined(separator: " ")
            text.append("m=\(section.kind) \(section.port)\(count) \(section.profile) \(formats)")
            text.append(section.otherLines, of: "i")
            if let connection = section.connection { text.append("c=\(connection.text)") }
            text.append(section.otherLines, of: "bk")
            for attribute in section.attributes { text.append(attributeLine(attribute)) }
        }
        return text.text
    }
}

/// Collects lines. Line ends inside a value would let the value add lines, so they are removed.
private struct LineWriter {
    var text = ""

    mutating func append(_ line: String) {
        for scalar in line.unicodeScalars where scalar != "\r" && scalar != "\n" && scalar != "\0" {
            text.unicodeScalars.append(scalar)
        }
        text += "\r\n"
    }

    mutating func append(_ lines: [SessionDescription.Line], of types: String) {
        for type in types {
            for line in lines where line.type == type { append("\(type)=\(line.value)") }
        }
    }
}

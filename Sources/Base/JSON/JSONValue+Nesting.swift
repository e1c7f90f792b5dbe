extension JSONValue {
    /// The nesting depth of brackets outside of strings; an upper bound if the text is not JSON.
    ///
    /// JSON parsers recurse, so text from outside is checked before it is parsed. This function does not recurse.
    public static func nesting(of text: [UInt8]) -> Int {
        let (quote, backslash) = (0x22 as UInt8, 0x5C as UInt8)
        let (openingBracket, openingBrace) = (0x5B as UInt8, 0x7B as UInt8)
        let (closingBracket, closingBrace) = (0x5D as UInt8, 0x7D as UInt8)
        var (depth, deepest) = (0, 0)
        var isInString = false
        var index = 0
        while index < text.count {
            let byte = text[index]
            index += 1
            if isInString {
                if byte == quote { isInString = false }
                if byte == backslash { index += 1 }
            } else if byte == quote {
                isInString = true
            } else if byte == openingBracket || byte == openingBrace {
                depth += 1
                if depth > deepest { deepest = depth }
            } else if byte == closingBracket || byte == closingBrace {
                depth -= 1
            }
        }
        return deepest
    }
}

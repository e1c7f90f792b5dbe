import FuzzInput
import XML

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzXML(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private let limits = XMLLimits(bytes: 8_192, depth: 6, elements: 64, attributes: 8)

private func read(_ bytes: [UInt8]) {
    guard let root = try? XMLReader.root(of: bytes, within: limits) else { return }
    require(bytes.count <= limits.bytes, "a document is bounded")
    var elements = 0
    check(root, depth: 1, &elements)
}

private func check(_ element: XMLElement, depth: Int, _ elements: inout Int) {
    elements += 1
    require(depth <= limits.depth && elements <= limits.elements, "elements are bounded")
    require(element.attributes.count <= limits.attributes, "attributes are bounded")
    require(Set(element.attributes.map(\.name)).count == element.attributes.count, "no attribute comes twice")
    // ISO-8859-1 becomes twice as long as UTF-8.
    require(element.text.utf8.count <= 2 * limits.bytes, "text does not grow: no entity is expanded")
    for child in element.children { check(child, depth: depth + 1, &elements) }
}

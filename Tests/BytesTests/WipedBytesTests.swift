import Core
import Foundation
import Testing

@Suite("Secret bytes")
struct WipedBytesTests {
    @Test("They are compared and read, and print as a mask")
    func reading() {
        let bytes = WipedBytes("secret".utf8)
        #expect(bytes == WipedBytes(Array("secret".utf8)) && bytes != WipedBytes("secreT".utf8))
        #expect(bytes.count == 6 && bytes.text == "secret" && "\(bytes)" == "(secret)" && WipedBytes([]).text == "")
        #expect(bytes.read { span in (0..<span.byteCount).compactMap { span.uint8(at: $0) } } == Array("secret".utf8))
        var dumped = ""
        dump(bytes, to: &dumped)
        #expect(!dumped.contains("secret\""))
    }

    @Test("An array that is wiped has zeros where the secret was, and one that another has keeps it there")
    func wiping() throws {
        var array = Array("a secret".utf8)
        let place = array.withUnsafeBytes { $0.baseAddress }
        let kept = WipedBytes(wiping: &array)
        #expect(array == Array(repeating: 0, count: 8) && kept.text == "a secret")
        #expect(array.withUnsafeBytes { $0.baseAddress } == place)
        let other = Array("a secret".utf8)
        var copy = other
        copy.wipe()
        #expect(other == Array("a secret".utf8))
    }

    @Test("They are equal to the same bytes alone, of any kind, also when those are a part of a text")
    func comparing() {
        let kept = WipedBytes("a secret".utf8)
        #expect(kept.isEqual(to: "Bearer a secret".utf8.dropFirst(7)) && kept.isEqual(to: Array("a secret".utf8)))
        for other in ["", "a secre", "a secrets", "A secret", "a secreu", "\u{0}a secret"] {
            #expect(!kept.isEqual(to: other.utf8))
        }
        #expect(WipedBytes([]).isEqual(to: []))
    }

    @Test("What was freed does not have them: of a thousand, none is found in memory that is allocated again")
    func freed() {
        let needle = Array("0123456789-secret-9876543210-abcdefghijklmnopqrstuvwxyz".utf8)
        for _ in 0..<1_000 { _ = WipedBytes(needle).count }
        var found = 0
        for _ in 0..<1_000 {
            // Of the same size, and so from the same bin.
            guard let memory = malloc(needle.count) else { continue }
            let bytes = UnsafeRawBufferPointer(start: memory, count: needle.count)
            if bytes.dropFirst(16).elementsEqual(needle.dropFirst(16)) { found += 1 }
            free(memory)
        }
        #expect(found == 0)
    }
}

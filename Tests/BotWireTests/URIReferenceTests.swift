import BotWire
import Testing

@Suite("References to resources (RFC 3986)")
struct URIReferenceTests {
    private static let base = URIReference("http://a/b/c/d;p?q")

    @Test("§5.4.1: The normal examples resolve as in the RFC")
    func normal() {
        let examples = [
            "g:h": "g:h", "g": "http://a/b/c/g", "./g": "http://a/b/c/g", "g/": "http://a/b/c/g/", "/g": "http://a/g",
            "//g": "http://g", "?y": "http://a/b/c/d;p?y", "g?y": "http://a/b/c/g?y", "#s": "http://a/b/c/d;p?q#s",
            "g#s": "http://a/b/c/g#s", "g?y#s": "http://a/b/c/g?y#s", ";x": "http://a/b/c/;x",
            "g;x": "http://a/b/c/g;x", "g;x?y#s": "http://a/b/c/g;x?y#s", "": "http://a/b/c/d;p?q",
            ".": "http://a/b/c/", "./": "http://a/b/c/", "..": "http://a/b/", "../": "http://a/b/",
            "../g": "http://a/b/g", "../..": "http://a/", "../../": "http://a/", "../../g": "http://a/g",
        ]
        for (reference, target) in examples {
            #expect(Self.base.resolving(URIReference(reference)).text == target, "\(reference)")
        }
    }

    @Test("§5.4.2: The abnormal examples resolve as in the RFC, strictly")
    func abnormal() {
        let examples = [
            "../../../g": "http://a/g", "../../../../g": "http://a/g", "/./g": "http://a/g", "/../g": "http://a/g",
            "g.": "http://a/b/c/g.", ".g": "http://a/b/c/.g", "g..": "http://a/b/c/g..", "..g": "http://a/b/c/..g",
            "./../g": "http://a/b/g", "./g/.": "http://a/b/c/g/", "g/./h": "http://a/b/c/g/h",
            "g/../h": "http://a/b/c/h", "g;x=1/./y": "http://a/b/c/g;x=1/y", "g;x=1/../y": "http://a/b/c/y",
            "g?y/./x": "http://a/b/c/g?y/./x", "g?y/../x": "http://a/b/c/g?y/../x",
            "g#s/./x": "http://a/b/c/g#s/./x", "g#s/../x": "http://a/b/c/g#s/../x", "http:g": "http:g",
        ]
        for (reference, target) in examples {
            #expect(Self.base.resolving(URIReference(reference)).text == target, "\(reference)")
        }
    }

    @Test("§5.2.4: Dots leave a path as in the RFC's examples; empty segments stay")
    func dots() {
        func path(_ text: String) -> String { URIReference("http://a").resolving(URIReference(text)).path }
        #expect(path("/a/b/c/./../../g") == "/a/g" && path("/mid/content=5/../6") == "/mid/6")
        #expect(path("/a//b") == "/a//b" && path("/a//../b") == "/a/b" && path("x") == "/x" && path("") == "")
    }

    @Test("Appendix B: A text is taken apart and put together again without a change, also one that is no address")
    func parts() {
        let whole = URIReference("http://www.ics.uci.edu/pub/ietf/uri/?x=1#Related")
        #expect(whole.scheme == "http" && whole.authority == "www.ics.uci.edu" && whole.path == "/pub/ietf/uri/")
        #expect(whole.query == "x=1" && whole.fragment == "Related")
        #expect(whole.withoutFragment.text == "http://www.ics.uci.edu/pub/ietf/uri/?x=1")
        for text in ["", ":", "//", "a:", "?", "#", "//?#", "a//b:c", "://x", "http:///x", "\u{0}ä"] {
            #expect(URIReference(text).text == text)
        }
    }
}

import AudioKit
import Foundation
import Glibc
import Files
import Testing

@Suite("Recordings that are not whole") struct PartFileTests {
    private let folder: ScratchFolder
    init() throws { folder = try ScratchFolder() }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted() }
    }

    @Test(
        "A recording that is not whole has another name beside its own, with the same ending",
        arguments: [
            ("/kept/a.wav", "/kept/a.part.wav"), ("a.b.opus", "a.b.part.opus"), ("/kept.d/a", "/kept.d/a.part"),
            (".wav", ".wav.part"),
        ])
    func name(path: String, part: String) { #expect(PartFile.path(of: path) == part) }

    @Test("A whole recording takes its name, and the place of what had the name when it began")
    func complete() throws {
        let path = folder.path("a.wav")
        _ = try folder.write([1], as: "a.wav")
        _ = try folder.write([2, 3], as: "a.part.wav")
        let earlier = try PartFile.check(path, sparing: [])
        #expect(earlier != nil)
        #expect(try PartFile.complete(path, replacing: earlier) == path)
        #expect(try names == ["a.wav"])
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([2, 3]))
        #expect(throws: AudioFileError.self) { try PartFile.complete(path) }
    }

    @Test("A file that was created meanwhile is not replaced: the recording gets a number behind its name")
    func nameTaken() throws {
        let path = folder.path("a.wav")
        #expect(try PartFile.check(path, sparing: []) == nil)
        _ = try folder.write([1], as: "a.wav")
        _ = try folder.write([2], as: "a-2.wav")
        #expect(symlink(folder.path("nowhere"), folder.path("a-3.wav")) == 0)
        _ = try folder.write([3], as: "a.part.wav")
        #expect(try PartFile.complete(path) == folder.path("a-4.wav"))
        #expect(try names == ["a-2.wav", "a-3.wav", "a-4.wav", "a.wav"])
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([1]))
        // Another file than the one that was to be replaced.
        let earlier = try PartFile.check(path, sparing: [])
        try FileManager.default.moveItem(atPath: path, toPath: folder.path("b.wav"))
        _ = try folder.write([4], as: "a.wav")
        _ = try folder.write([5], as: "a.part.wav")
        #expect(try PartFile.complete(path, replacing: earlier) == folder.path("a-5.wav"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([4]))
    }

    @Test("Names of recordings that are not whole are no names for others")
    func reserved() throws {
        for name in ["a.part.wav", "/k/a.cut.opus", "a.part", ".part.wav"] {
            #expect(PartFile.isReserved(name))
            #expect(throws: AudioFileError.self) { try PartFile.check(folder.path(name), sparing: []) }
        }
        for name in ["a.wav", "part.wav", "cut", "a.b.part.c.wav", "/k.part/a.wav", "apart.wav", ""] {
            #expect(!PartFile.isReserved(name))
        }
    }

    @Test("A played file, a folder and a link are not replaced by a recording; a file of another kind is")
    func check() throws {
        _ = try folder.write([1], as: "a.wav")
        try PartFile.check(folder.path("a.wav"), sparing: [])
        try PartFile.check(folder.path("new.wav"), sparing: [])
        let played = try #require(FileIdentity(path: folder.path("a.wav")))
        #expect(link(folder.path("a.wav"), folder.path("hard.wav")) == 0)
        #expect(symlink(folder.path("a.wav"), folder.path("link.wav")) == 0)
        for name in ["a.wav", "hard.wav", "link.wav", ""] {
            #expect(throws: AudioFileError.self) { try PartFile.check(folder.path(name), sparing: [played]) }
        }
    }

    @Test(
        "What killed processes have left is kept under a name that says so; nothing is replaced, and other files stay")
    func leftovers() throws {
        for name in ["a.part.wav", "b.part.opus", "c.part.wav", "c.cut.wav", "d.wav", "e.part.txt", ".part.wav"] {
            _ = try folder.write(Array(name.utf8), as: name)
        }
        #expect(mkfifo(folder.path("f.part.wav"), 0o600) == 0)
        // One that is being recorded.
        let writer = try WAVWriter(path: folder.path("g.part.wav"))
        let kept = PartFile.keepLeftovers(in: folder.url.path)
        #expect(kept == [folder.path("a.cut.wav"), folder.path("b.cut.opus")])
        let expected = [
            ".part.wav", "a.cut.wav", "b.cut.opus", "c.cut.wav", "c.part.wav", "d.wav", "e.part.txt", "f.part.wav",
            "g.part.wav",
        ]
        #expect(try names == expected)
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.path("c.cut.wav"))) == Data("c.cut.wav".utf8))
        #expect(writer.savedMilliseconds == 0)
        #expect(PartFile.keepLeftovers(in: folder.path("nowhere")) == [])
    }

    @Test("A packet that contains its own length has it in one byte up to 251, and in two beyond (RFC 6716 §3.2.1)")
    func selfDelimited() {
        for count in [0, 1, 251, 252, 255, 256, 1_000, 1_275] {
            let packet = [UInt8(0x78)] + [UInt8](repeating: 7, count: count)
            guard let delimited = OggOpusWriter.selfDelimited(packet) else {
                Issue.record("\(count) bytes are refused")
                continue
            }
            let isLong = count >= 252
            let length = isLong ? Int(delimited[2]) * 4 + Int(delimited[1]) : Int(delimited[1])
            #expect(length == count && delimited.count == packet.count + (isLong ? 2 : 1))
            #expect(delimited[0] == 0x78 && Array(delimited.suffix(count)) == Array(packet.dropFirst()))
        }
        #expect(OggOpusWriter.selfDelimited([0x79, 1, 1]) == nil, "two frames")
        #expect(OggOpusWriter.selfDelimited([]) == nil)
    }
}

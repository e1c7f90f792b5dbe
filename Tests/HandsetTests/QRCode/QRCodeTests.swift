import Foundation
import handset
import Testing

@Suite struct QRCodeTests {
    @Test("A short text becomes the code that a reader has read")
    func golden() throws {
        let code = try #require(QRCode("HANDSET"))
        let rows = (0..<code.size).map { row in
            String((0..<code.size).map { code[$0, row] ? "#" : "." })
        }
        let expected = """
            #######.#..##.#######
            #.....#.......#.....#
            #.###.#...###.#.###.#
            #.###.#.#.#...#.###.#
            #.###.#.#...#.#.###.#
            #.....#.#.##..#.....#
            #######.#.#.#.#######
            ........#.###........
            #...#.####.#.#####..#
            .#.##..###.##..#.....
            ####..#.#..#..####.#.
            ###.#....##..##.##...
            #.########..###..#.##
            ........#.#.###...#..
            #######.#.#.##......#
            #.....#..####..#.#.##
            #.###.#.##.#..####.##
            #.###.#..#.##....#.##
            #.###.#..###..#####..
            #.....#..#...##.###.#
            #######.#.#.#########
            """
        #expect(rows.joined(separator: "\n") == expected)
    }

    @Test("The size grows with the text, capital letters and digits take less room, and what is too long is refused")
    func sizes() {
        #expect(QRCode("")?.size == 21)
        #expect(QRCode(String(repeating: "A", count: 20))?.size == 21)
        #expect(QRCode(String(repeating: "a", count: 14))?.size == 21)
        #expect(QRCode(String(repeating: "A", count: 21))?.size == 25)
        #expect(QRCode(String(repeating: "a", count: 15))?.size == 25)
        #expect(QRCode(String(repeating: "a", count: 666))?.size == 97)
        #expect(QRCode(String(repeating: "a", count: 667)) == nil)
        #expect(QRCode(String(repeating: "A", count: 970))?.size == 97)
        #expect(QRCode(String(repeating: "A", count: 971)) == nil)
    }

    @Test("A picture is a PNG with good checksums, and zbarimg, where it is installed, reads the text from it")
    func pictures() throws {
        for text in ["HANDSET://CALLS.EXAMPLE.ORG:8555/E7GF-FRH9-KMN9-Q6S9-8D3M", String(repeating: "ab[]", count: 60)]
        {
            let code = try #require(QRCode(text))
            let png = code.png(scale: 4)
            #expect(png.starts(with: [0x89, 0x50, 0x4E, 0x47]))
            guard FileManager.default.isExecutableFile(atPath: "/usr/bin/zbarimg") else { continue }
            let file = FileManager.default.temporaryDirectory.appending(path: "code-\(UUID()).png")
            try Data(png).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let reader = Process()
            reader.executableURL = URL(filePath: "/usr/bin/zbarimg")
            reader.arguments = ["-q", "--raw", file.path]
            let output = Pipe()
            (reader.standardOutput, reader.standardError) = (output, FileHandle.nullDevice)
            try reader.run()
            let read = try output.fileHandleForReading.readToEnd() ?? Data()
            reader.waitUntilExit()
            #expect(String(decoding: read, as: UTF8.self) == text + "\n")
        }
    }

    @Test("A terminal shows two rows of modules on a line, with a light border of four")
    func terminal() throws {
        let code = try #require(QRCode("HANDSET"))
        let lines = code.terminalText.split(separator: "\n")
        #expect(lines.count == (code.size + 9) / 2)
        #expect(lines.allSatisfy { $0.hasPrefix("\u{1B}[30;107m") && $0.hasSuffix("\u{1B}[0m") })
        #expect(lines.allSatisfy { $0.filter { " ▀▄█".contains($0) }.count == code.size + 8 })
    }
}

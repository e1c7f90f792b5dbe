import AudioKit
import Foundation
import TestSupport
import Testing

@Suite struct WAVHeaderTests {
    private func parse(_ bytes: [UInt8]) throws -> WAVHeader { try WAVHeader(parsing: bytes.span.bytes) }

    @Test("The forms of samples are distinguished, extensible ones too", arguments: [false, true])
    func sampleFormats(isExtensible: Bool) throws {
        let forms: [(UInt16, UInt16, WAVHeader.SampleFormat)] = [
            (1, 8, .unsigned8), (1, 16, .signed16), (1, 24, .signed24), (1, 32, .signed32), (3, 32, .float32),
            (1, 20, .signed24), (7, 8, .muLaw), (6, 8, .aLaw),
        ]
        for (tag, bits, format) in forms {
            let builder = WAVBuilder(tag: tag, channels: 2, rate: 44_100, bits: bits, isExtensible: isExtensible)
            let header = try parse(builder.file([1, 2, 3, 4]))
            #expect(header.sampleFormat == format)
            #expect(header.channels == 2)
            #expect(header.sampleRate == 44_100)
            #expect(header.dataByteCount == 4)
            #expect(header.dataOffset == (isExtensible ? 68 : 44))
        }
    }

    @Test("Chunks before the format are skipped, odd ones with and without their pad byte")
    func chunks() throws {
        var builder = WAVBuilder()
        builder.before = [("LIST", [1, 2, 3], true), ("junk", [9], false), ("bext", [], true)]
        #expect(try parse(builder.file([0, 0])).dataOffset == 44 + 12 + 9 + 8)
    }

    @Test("A size of 0 or -1 from a streaming writer means up to the end of the file", arguments: [0, UInt32.max])
    func streamedSizes(size: UInt32) throws {
        var builder = WAVBuilder()
        builder.claimedDataBytes = size
        #expect(try parse(builder.file([1, 2])).dataByteCount == nil)
    }

    @Test("An RF64 file gives its length in the ds64 chunk")
    func longFile() throws {
        var builder = WAVBuilder()
        builder.magic = "RF64"
        builder.claimedDataBytes = .max
        builder.before = [("ds64", le(UInt64(1 << 33)) + le(UInt64(1) << 32) + le(UInt64(0)) + le(UInt32(0)), true)]
        #expect(try parse(builder.file([])).dataByteCount == 1 << 32)
    }

    @Test("What is no WAV, or one of a form that is not supported, is refused with what was found")
    func refusals() {
        func reason(_ bytes: [UInt8]) -> String {
            do throws(WAVFormatError) {
                _ = try WAVHeader(parsing: bytes.span.bytes)
                return "accepted"
            } catch {
                return error.reason
            }
        }
        #expect(reason(Array("ID3 and more".utf8)) == "not a WAV: it begins with \"ID3 \" instead of \"RIFF\"")
        #expect(reason(Array("RIFF----AVI ".utf8)).contains("of the kind \"AVI \""))
        #expect(reason(WAVBuilder(tag: 7, bits: 16).file([])).contains("16 bits of format 7"))
        #expect(reason(WAVBuilder(tag: 17, bits: 4, isExtensible: true).file([])).contains("4 bits of format 17"))
        #expect(reason(WAVBuilder(tag: 3, bits: 64).file([])).contains("64 bits of format 3"))
        #expect(reason(WAVBuilder(channels: 0).file([])).contains("0 channels"))
        #expect(reason(WAVBuilder(rate: 0).file([])).contains("0 Hz"))
        let samplesFirst = Array("RIFF----WAVEdata".utf8) + le(UInt32(0))
        #expect(reason(samplesFirst).contains("samples come before their format"))
    }

    @Test("A head cut off anywhere says that more bytes are needed, and how many", arguments: [1, 6, 7] as [UInt16])
    func truncation(tag: UInt16) throws {
        var builder = WAVBuilder(tag: tag, bits: tag == 1 ? 16 : 8, isExtensible: true)
        builder.before = [("LIST", [1, 2, 3], true)]
        let file = builder.file([5, 6])
        let head = try parse(file).dataOffset
        for length in 0..<head {
            do throws(WAVFormatError) {
                _ = try WAVHeader(parsing: file.span.bytes.extracting(0..<length))
                Issue.record("\(length) bytes were taken for a whole head")
            } catch {
                let needed = try #require(error.bytesNeeded)
                #expect(needed > length && needed <= head)
            }
        }
    }

    @Test("Random bytes, and random changes to a good file, never trap")
    func randomBytes() {
        var random = SeededGenerator(seed: 7)
        var builder = WAVBuilder(channels: 2, isExtensible: true)
        builder.before = [("ds64", [UInt8](repeating: 1, count: 28), true)]
        let good = builder.file([UInt8](repeating: 3, count: 16))
        for _ in 0..<20_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                bytes[index] = UInt8.random(in: 0...255, using: &random)
            }
            bytes.removeLast(Int.random(in: 0...10, using: &random))
            _ = try? parse(bytes)
        }
    }
}

@Suite struct WAVReaderTests {
    private let folder: ScratchFolder
    init() throws { folder = try ScratchFolder() }

    @Test("Each form of samples gives the same sound")
    func sampleValues() throws {
        let values: [Int16] = [0, 1, -1, 256, -256, 16_384, -16_384, 32_767, -32_768]
        let files: [(WAVBuilder, [UInt8])] = [
            (WAVBuilder(bits: 16), values.flatMap { le($0) }),
            (WAVBuilder(bits: 24), values.flatMap { Array(le(Int32($0) << 8).prefix(3)) }),
            (WAVBuilder(bits: 32), values.flatMap { le(Int32($0) << 16) }),
            (WAVBuilder(tag: 3, bits: 32), values.flatMap { le((Float($0) / 32_768).bitPattern) }),
        ]
        for (builder, data) in files {
            #expect(try read(folder.write(builder.file(data), as: "form.wav")) == values)
        }
        let eight = try read(folder.write(WAVBuilder(bits: 8).file([128, 129, 127, 255, 0]), as: "eight.wav"))
        #expect(eight == [0, 256, -256, 32_512, -32_768])
    }

    @Test(
        "Files of µ-law and A-law, extensible ones too, play what G.711 says of each byte",
        arguments: [G711.muLaw, .aLaw],
        [false, true])
    func telephoneFiles(law: G711, isExtensible: Bool) throws {
        let bytes = (0...255).map(UInt8.init)
        var builder = WAVBuilder(tag: law == .muLaw ? 7 : 6, bits: 8, isExtensible: isExtensible)
        builder.before = [("fact", le(UInt32(256)), true)]
        #expect(try read(folder.write(builder.file(bytes), as: "law.wav")) == bytes.map(law.sample))
        builder.channels = 2
        let pairs = bytes.flatMap { [$0, $0] }
        #expect(try read(folder.write(builder.file(pairs + [9]), as: "two.wav")) == bytes.map(law.sample))
    }

    @Test(
        "A prompt of a telephone, 8 000 samples a second, is heard with its length and level",
        arguments: [G711.muLaw, .aLaw])
    func prompt(law: G711) throws {
        let tone = (0..<4_000).map { Int16(8_000 * sin(2 * Double.pi * 500 * Double($0) / 8_000)) }
        var bytes = [UInt8](repeating: 0, count: tone.count)
        var room = bytes.mutableSpan
        _ = law.encode(tone.span, into: &room)
        let file = WAVBuilder(tag: law == .muLaw ? 7 : 6, rate: 8_000, bits: 8).file(bytes)
        let samples = try read(folder.write(file, as: "prompt.wav"))
        #expect(samples.count == 24_000)
        #expect(abs(rms(samples[4_800..<19_200]) / (8_000 / 2.0.squareRoot()) - 1) < 0.02)
        for length in stride(from: 0, to: file.count, by: 97) {
            // A file cut off anywhere plays what is there, or is refused.
            let cut = try? read(folder.write(Array(file.prefix(length)), as: "cut.wav"))
            #expect((cut?.count ?? 0) <= 24_000)
        }
    }

    @Test("Float samples out of range or not numbers are limited, not trapped on")
    func wildFloats() throws {
        let data = [Float.nan, .infinity, -.infinity, 7, -7].flatMap { le($0.bitPattern) }
        #expect(
            try read(folder.write(WAVBuilder(tag: 3, bits: 32).file(data), as: "wild.wav")) == [
                0, 0, 0, 32_767, -32_768,
            ])
    }

    @Test("Channels are averaged")
    func downmix() throws {
        let data = [Int16(1_000), 3_000, -500, 500, 32_767, 32_767].flatMap { le($0) }
        #expect(try read(folder.write(WAVBuilder(channels: 2).file(data), as: "stereo.wav")) == [2_000, 0, 32_767])
    }

    @Test(
        "A tone of any rate comes out at 48 kHz with its length, level and frequency",
        arguments: [8_000, 11_025, 16_000, 44_100, 96_000, 192_000])
    func resampling(rate: Int) throws {
        let data = (0..<rate / 2).flatMap { index in
            le(Int16(8_000 * sin(2 * Double.pi * 1_000 * Double(index) / Double(rate))))
        }
        let samples = try read(folder.write(WAVBuilder(rate: UInt32(rate)).file(data), as: "tone.wav"))
        #expect(samples.count == (rate / 2 * 48_000 + rate - 1) / rate)
        let middle = samples[4_800..<19_200]
        #expect(abs(rms(middle) / (8_000 / 2.0.squareRoot()) - 1) < 0.01)
        // In place, not only alike: the resampler's own delay is taken out.
        let difference = zip(middle, 4_800...).map { sample, index in
            Int16(Double(sample) - 8_000 * sin(2 * Double.pi * 1_000 * Double(index) / 48_000))
        }
        #expect(rms(difference) < 80)
    }

    @Test("The pieces in which a file is read make no difference", arguments: [1, 7, 960, 100_000])
    func pieces(block: Int) throws {
        let noise = TestSignal.noise(samples: 30_000, amplitude: 9_000, seed: 3)
        let file = try folder.write(WAVBuilder(channels: 2, rate: 32_000).file(noise.flatMap { le($0) }), as: "n.wav")
        let whole = try AudioFileReader.samples(ofFile: file)
        #expect(whole.count == 22_500)
        #expect(try read(file, block: block) == whole)
    }

    @Test("Chunks behind the samples are not played, and samples cut short end the file quietly")
    func dataEnd() throws {
        var builder = WAVBuilder()
        builder.after = Array("LIST".utf8) + le(UInt32(4)) + [1, 2, 3, 4]
        #expect(try read(folder.write(builder.file([1, 0, 2, 0]), as: "a.wav")) == [1, 2])
        builder = WAVBuilder()
        builder.claimedDataBytes = 1_000
        #expect(try read(folder.write(builder.file([1, 0, 2, 0, 3]), as: "b.wav")) == [1, 2])
        builder.claimedDataBytes = .max
        #expect(try read(folder.write(builder.file([1, 0, 2, 0]), as: "c.wav")) == [1, 2])
    }

    @Test("A head longer than what is read at first is read on")
    func longHead() throws {
        var builder = WAVBuilder()
        builder.before = [("LIST", [UInt8](repeating: 0, count: 100_001), true)]
        #expect(try read(folder.write(builder.file([1, 0, 2, 0]), as: "long.wav")) == [1, 2])
    }

    @Test("A looping file continues without a gap, and one without samples ends")
    func looping() throws {
        let file = try folder.write(WAVBuilder().file([1, 0, 2, 0, 3, 0]), as: "loop.wav")
        #expect(try read(file, block: 4, loops: true, limit: 12) == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3])
        let empty = try folder.write(WAVBuilder().file([]), as: "empty.wav")
        #expect(try read(empty, loops: true).isEmpty)
    }

    @Test("A file that cannot be played says which, what it is and what to do")
    func errors() throws {
        func message(_ path: String) -> (AudioFileError.Code, String)? {
            do throws(AudioFileError) {
                _ = try AudioFileReader(path: path)
                return nil
            } catch {
                return (error.code, error.description)
            }
        }
        let mp3 = try folder.write(Array("ID3\u{3}and more than that".utf8), as: "song.wav")
        #expect(message(mp3)?.0 == .notAudio)
        #expect(message(mp3)?.1.contains("not a WAV: it begins with 0x49443303") == true)
        let empty = try folder.write([], as: "none.wav")
        #expect(message(empty)?.1.contains("not a WAV: it ends before its samples begin") == true)
        let other = try folder.write(WAVBuilder(tag: 2, bits: 4).file([1]), as: "adpcm.wav")
        #expect(message(other)?.0 == .unsupported)
        #expect(message(other)?.1.contains("4 bits of format 2") == true)
        #expect(message(folder.path("absent.wav"))?.0 == .notFound)
        #expect(message(folder.url.path)?.0 == .unreadable)
        #expect(message(folder.url.path)?.1.contains("it is a folder") == true)
        // Nobody has the other end of the pipe open, so that an opening that waits would wait for ever.
        #expect(mkfifo(folder.path("pipe.wav"), 0o600) == 0)
        #expect(message(folder.path("pipe.wav"))?.0 == .unreadable)
        #expect(message(folder.path("pipe.wav"))?.1.contains("it is a named pipe") == true)
        #expect(message("/dev/zero")?.1.contains("it is a device") == true)
        let opus = try folder.write(Array("OggS and then nothing good".utf8), as: "bad.opus")
        #expect(message(opus)?.0 == .notAudio)
    }

    @Test(
        "A recorded voice from the system's sounds is read",
        .enabled(if: FileManager.default.fileExists(atPath: "/usr/share/sounds/alsa/Front_Center.wav")))
    func realFile() throws {
        let samples = try AudioFileReader.samples(ofFile: "/usr/share/sounds/alsa/Front_Center.wav")
        #expect((48_000...144_000).contains(samples.count))
        #expect(rms(samples) > 300)
    }
}

@Suite struct OggOpusReaderTests {
    private var file: String {
        get throws {
            try #require(Bundle.module.url(forResource: "tone-500hz-stereo", withExtension: "opus")).path
        }
    }

    @Test("An Ogg Opus file is found out by its content and read as mono at 48 kHz with its length and level")
    func tone() throws {
        let samples = try AudioFileReader.samples(ofFile: file)
        #expect(samples.count == 48_000)
        #expect(abs(rms(samples[9_600..<38_400]) / (32_767 * 0.251 / 2.0.squareRoot()) - 1) < 0.05)
        let crossings = zip(samples, samples.dropFirst()).count { $0 < 0 && $1 >= 0 }
        #expect((498...502).contains(crossings))
    }

    @Test("It loops, and a file cut off in the middle ends there")
    func loopAndCut() throws {
        #expect(try read(file, loops: true, limit: 100_000).count >= 100_000)
        let folder = try ScratchFolder()
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
        let cut = try folder.write(Array(bytes.prefix(bytes.count / 2)), as: "cut.opus")
        let samples = try? read(cut)
        #expect((samples?.count ?? 0) < 48_000)
    }
}

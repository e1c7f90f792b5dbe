import AudioKit
import FuzzInput
import Glibc

/// Called by libFuzzer with each input: a file to be played, as somebody may leave it where a device looks.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzOggOpus(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

/// In memory; this process alone writes to it.
private let path = "/dev/shm/handset-fuzz-ogg-\(getpid())"

private func read(_ bytes: [UInt8]) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { broken("a file in memory can be made") }
    let written = unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    close(descriptor)
    require(written == bytes.count, "a file in memory takes the input")
    defer { _ = unsafe unlink(path) }
    do throws(AudioFileError) {
        var reader = try OggOpusReader(path: path)
        // A short file may claim hours of sound: 10 s of it are enough.
        var first = try play(&reader, most: 480_000)
        if first.count == 480_000 { return }
        try reader.rewind()
        let again = try play(&reader, most: 480_000)
        require(first.count == again.count, "a file is as long when it is played again")
        first = again
    } catch {
        require(!error.description.isEmpty, "an error says something")
    }
}

private func play(_ reader: inout OggOpusReader, most: Int) throws(AudioFileError) -> [Int16] {
    var samples: [Int16] = []
    var block = [Int16](repeating: 0, count: 4_800)
    while samples.count < most {
        var room = block.mutableSpan
        let count = try reader.read(into: &room)
        samples += block[..<count]
        if count < block.count { break }
    }
    return samples
}

import Glibc
import Testing

@testable import Realtime

@Suite("The kernel's files about this process")
struct ProcessFilesTests {
    @Test("The files of another namespace of processes have another id, and a container without /proc has no files")
    func areOwn() {
        #expect(ProcessFiles.areOwn)
        #expect(ProcessFiles.areOwn("42 (handset) S 1 42", process: 42))
        #expect(!ProcessFiles.areOwn("4242 (handset) S 1 4242", process: 42))
        #expect(!ProcessFiles.areOwn("1 (42 (handset) S 0 1", process: 42))
        #expect(!ProcessFiles.areOwn("", process: 42) && !ProcessFiles.areOwn(nil, process: 42))
    }
}

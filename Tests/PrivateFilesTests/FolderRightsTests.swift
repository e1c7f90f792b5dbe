import Foundation
import Files
import Testing

@Suite("What another user may do with files")
struct FolderRightsTests {
    @Test(
        "The owner and mode of a file's folder decide whether another user may replace the file",
        arguments: [
            (0o777, true, true), (0o755, true, false), (0o700, true, false), (0o577, false, true), (0o775, true, true),
            (0o703, true, true), (0o756, true, false), (0o720, true, false), (0o730, true, true),
        ])
    func mode(mode: Int, owner: Bool, others: Bool) throws {
        let folder = FileManager.default.temporaryDirectory.path + "/rights-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder)
        let mine = try #require(FolderRights.owner(of: folder))
        let file = folder + "/users.yaml"
        // Root may do all.
        #expect(FolderRights.mayReplace(file, user: mine) == (owner || mine == 0))
        #expect(FolderRights.mayReplace(file, user: 987_654) == others)
        #expect(FolderRights.mayReplace(file, user: 0))
        #expect(FolderRights.owner(of: file) == nil)
    }
}

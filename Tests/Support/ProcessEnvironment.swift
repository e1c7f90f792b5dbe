import CEnvironment

/// Sets a variable of this process, or removes it, while other tests run and their threads read variables.
///
/// `setenv` and `unsetenv` free what a `getenv` in another thread reads, and the process ends; `scripts/lint` refuses them in tests.
public func setVariable(_ name: String, to value: String?) {
    precondition(handset_test_set_variable(name, value) == 0, "no memory for a variable")
}

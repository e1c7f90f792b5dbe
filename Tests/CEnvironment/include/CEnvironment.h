// Changes variables of the environment while other threads read it, which setenv and unsetenv of the C library do not allow:
// they free the array that a getenv in another thread (of libasound, of a name lookup) goes through.
#pragma once

/// Sets a variable, or removes it if `value` is NULL. What was there before is never freed, so readers find the old value or
/// the new one. Nothing else in the process may call setenv, unsetenv or putenv.
///
/// Returns 0, or ENOMEM.
int handset_test_set_variable(const char *name, const char *value);

// libsrtp2 for Swift.
#pragma once
#include <srtp2/srtp.h>

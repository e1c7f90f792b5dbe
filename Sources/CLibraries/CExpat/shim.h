// libexpat, as the distribution ships it.
#pragma once
#include <expat.h>

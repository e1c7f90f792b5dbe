// libyaml, as the distribution ships it.
#pragma once
#include <yaml.h>

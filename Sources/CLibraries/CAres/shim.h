// c-ares, as the distribution ships it.
#pragma once
#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>

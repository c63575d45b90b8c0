/* The dictionary with which SPDY/3.1 compresses header blocks (zlib's FDICT).
 *
 * Layer: services; pure.
 */
#pragma once

enum { SPDY_DICTIONARY_BYTES = 1423 };

void spdy_dictionary(unsigned char ret[SPDY_DICTIONARY_BYTES]);

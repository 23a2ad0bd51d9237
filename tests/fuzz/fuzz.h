/*
 * fuzz.h: the entry point of a fuzz target, as libFuzzer and others call it
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_FUZZ_H
#define VSP_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <glib.h>
#include <glib/gstdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* VSP_FUZZ_H */

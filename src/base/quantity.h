/* Quantities of the Kubernetes API: "500m", "1.5", "1Gi", "2e3".
 *
 * Layer: base. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Reads the quantity as a number; returns false if the text is not a quantity. */
bool quantity_read(const char *text, double *ret);

/* Reads the quantity in thousandths, rounded up; returns -1 if the text is not a quantity, is
 * negative or does not fit. */
int64_t quantity_milli(const char *text);

/* Half precision numbers (IEEE 754 binary16); see float16.c. */
#ifndef HOSTACL_FLOAT16_H
#define HOSTACL_FLOAT16_H

#include <stdint.h>

/* The nearest half; of two equally near ones the even one. Too large is infinite, a NaN stays one. */
uint16_t float16_from_float(float value);

/* The same number; every half is a float. */
float float16_to_float(uint16_t half);

#endif

/* Half precision numbers (IEEE 754 binary16, bfloat16); see float16.c. */
#ifndef HOSTACL_FLOAT16_H
#define HOSTACL_FLOAT16_H

#include <stdint.h>

/* The nearest half; of two equally near ones the even one. Too large is infinite, a NaN stays one. */
uint16_t float16_from_float(float value);

/* The same number; every half is a float. */
float float16_to_float(uint16_t half);

/* The same for bfloat16, the upper half of a float. */
uint16_t bfloat16_from_float(float value);
float bfloat16_to_float(uint16_t bits);

#endif

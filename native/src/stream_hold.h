/* Holding streams, for tests; see stream_hold.c. */
#ifndef HOSTACL_STREAM_HOLD_H
#define HOSTACL_STREAM_HOLD_H

struct device;

/* Holds every stream of a device (null: of all devices) that exists now; when it returns none of them moves a byte. */
void stream_hold(const struct device *device);

/* Lets them go on. */
void stream_release(const struct device *device);

#endif

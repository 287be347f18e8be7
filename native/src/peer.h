/* Which device may reach the memory of which other; see peer.c. */
#ifndef HOSTACL_PEER_H
#define HOSTACL_PEER_H

#include <stdbool.h>

struct device;

/* Lets a device reach the memory of another. */
void peer_enable(struct device *device, const struct device *peer);
void peer_disable(struct device *device, const struct device *peer);

/* Whether bytes may be copied between the memory of two devices. */
bool peer_reaches(const struct device *a, const struct device *b);

#endif

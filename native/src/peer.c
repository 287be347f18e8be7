/* Peer access. Each device has the set of devices it may reach; it ends with the device's tear-down. A copy between two
 * devices needs it in one direction, as one of the two moves the bytes; the card profile asks for none.
 *
 * Thread safety: callers hold the table lock. */
#include "peer.h"

#include "device.h"
#include "host_memory.h"
#include "runtime.h"

void peer_enable(struct device *device, const struct device *peer) {
    device->peers |= (uint64_t)1 << peer->id;
}

void peer_disable(struct device *device, const struct device *peer) {
    device->peers &= ~((uint64_t)1 << peer->id);
}

bool peer_reaches(const struct device *a, const struct device *b) {
    bool one_side = a == b || a == host_memory() || b == host_memory();
    return one_side || runtime_config()->profile->open_peers || (a->peers >> b->id & 1) || (b->peers >> a->id & 1);
}

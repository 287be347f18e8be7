/* Memory that the host sees at its device address; see host_view.c. */
#ifndef HOSTACL_HOST_VIEW_H
#define HOSTACL_HOST_VIEW_H

#include <stdbool.h>

#include "pagetable.h"

/* Maps the bytes of a region that is in the page table at its address, where the mode or the kind of memory asks for
 * it. False when the host allows no further mapping. Host memory at addresses that are mere numbers is not mapped. */
bool host_view_open(struct region *region);

/* Makes the addresses of the region fault again. */
void host_view_close(struct region *region);

/* Whether the limit of mappings is reached. */
bool host_view_full(void);

/* Records and returns the refusal that names the limit. */
int host_view_raise_full(void);

#endif
